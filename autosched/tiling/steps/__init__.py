"""The steps of a tensorized nest on a CPU, one scheduling idea a file; `cpu_steps` lists them in order.

Each file holds what its idea decides, forbids and derives. The code it turns into is in the file of the same name under
`codegen/lower`, since a space never holds source text.
"""

from autosched.tiling.steps.cache_block import cache_block
from autosched.tiling.steps.loop_order import ORDERS, loop_order
from autosched.tiling.steps.names import StepNames, blocked_axes, tiled_axes
from autosched.tiling.steps.pack import DIRECT, PADDED, PANEL, pack, vectorises
from autosched.tiling.steps.parallel import parallel
from autosched.tiling.steps.prefetch import prefetch
from autosched.tiling.steps.register_tile import register_tile
from autosched.tiling.steps.unroll import unroll

__all__ = [
    "DIRECT",
    "ORDERS",
    "PADDED",
    "PANEL",
    "StepNames",
    "blocked_axes",
    "cache_block",
    "loop_order",
    "pack",
    "parallel",
    "prefetch",
    "register_tile",
    "tiled_axes",
    "unroll",
    "vectorises",
]
