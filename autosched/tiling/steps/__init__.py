"""The steps of a tensorized nest, one scheduling idea a file; those that only a GPU has are called `gpu_…`.

Each file holds what its idea decides, forbids and derives. The code it turns into is in the file of the same name under
`codegen/lower`, since a space never holds source text.
"""

from autosched.tiling.steps.block_panel import BLOCK, block_loops, outer_axes
from autosched.tiling.steps.cache_block import cache_block
from autosched.tiling.steps.columns import COLUMNS, column_units
from autosched.tiling.steps.copy_each import EACH_PART, WHOLE, part_axes
from autosched.tiling.steps.edges import APART, apart, conditions, edges, inside
from autosched.tiling.steps.fills import last_tiles, rounded, runs_on, spans
from autosched.tiling.steps.gpu_limits import gpu_limits
from autosched.tiling.steps.gpu_stage import gpu_stage
from autosched.tiling.steps.gpu_tile import gpu_pair, gpu_tile, is_gpu
from autosched.tiling.steps.interleave import Interleave, interleave
from autosched.tiling.steps.layout import vectorises
from autosched.tiling.steps.lines import lines
from autosched.tiling.steps.loop_order import ORDERS, loop_order
from autosched.tiling.steps.names import StepNames, blocked_axes, tiled_axes
from autosched.tiling.steps.pack import DIRECT, INTERLEAVED, PADDED, PANEL, PANELS, pack
from autosched.tiling.steps.parallel import parallel
from autosched.tiling.steps.prefetch import prefetch
from autosched.tiling.steps.register_tile import register_tile
from autosched.tiling.steps.shared_loads import EACH, Window, offered, shared_loads, window
from autosched.tiling.steps.unroll import unroll
from autosched.tiling.steps.visited import skip

__all__ = [
    "APART",
    "BLOCK",
    "COLUMNS",
    "DIRECT",
    "EACH",
    "EACH_PART",
    "INTERLEAVED",
    "ORDERS",
    "PADDED",
    "PANEL",
    "PANELS",
    "WHOLE",
    "Interleave",
    "StepNames",
    "Window",
    "apart",
    "block_loops",
    "blocked_axes",
    "cache_block",
    "column_units",
    "conditions",
    "edges",
    "gpu_limits",
    "gpu_pair",
    "gpu_stage",
    "gpu_tile",
    "inside",
    "interleave",
    "is_gpu",
    "last_tiles",
    "lines",
    "loop_order",
    "offered",
    "outer_axes",
    "pack",
    "parallel",
    "part_axes",
    "prefetch",
    "register_tile",
    "rounded",
    "runs_on",
    "shared_loads",
    "skip",
    "spans",
    "tiled_axes",
    "unroll",
    "vectorises",
    "window",
]
