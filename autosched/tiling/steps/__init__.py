"""The steps of a tensorized nest, one scheduling idea a file, by kind of target: `cpu`, `gpu`, `spatial`, and `scalar`
for stages without an instruction. `nest_steps` and `part_steps` put them in order.

Each file holds what its idea decides, forbids and derives. The code it turns into is under `codegen/lower`, since a
space never holds source text.
"""

from autosched.tiling.plans.step_names import StepNames, blocked_axes, tiled_axes
from autosched.tiling.steps.common.layout import vectorises
from autosched.tiling.steps.common.register_tile import register_tile
from autosched.tiling.steps.cpu.block_panel import BLOCK, block_loops, outer_axes
from autosched.tiling.steps.cpu.cache_block import cache_block
from autosched.tiling.steps.cpu.columns import COLUMNS, column_units
from autosched.tiling.steps.cpu.copy_granularity import EACH_PART, WHOLE, part_axes
from autosched.tiling.steps.cpu.edges import APART, apart, conditions, edges, inside
from autosched.tiling.steps.cpu.fills import last_tiles, rounded, runs_on, spans
from autosched.tiling.steps.cpu.interleave import Interleave, interleave
from autosched.tiling.steps.cpu.loop_order import ORDERS, loop_order
from autosched.tiling.steps.cpu.outer_tile_order import outer_tile_order
from autosched.tiling.steps.cpu.pack import DIRECT, INTERLEAVED, LOAD, PADDED, PANEL, PANELS, pack
from autosched.tiling.steps.cpu.parallel import parallel
from autosched.tiling.steps.cpu.prefetch import prefetch
from autosched.tiling.steps.cpu.shared_loads import EACH, StreamedWindow, offered, shared_loads, window
from autosched.tiling.steps.cpu.skip_guarded import skip
from autosched.tiling.steps.cpu.unroll import unroll
from autosched.tiling.steps.gpu.block_tile import gpu_pair, gpu_tile, is_gpu
from autosched.tiling.steps.gpu.occupancy import gpu_limits
from autosched.tiling.steps.gpu.operands.operand_sources import gpu_stage

__all__ = [
    "APART",
    "BLOCK",
    "COLUMNS",
    "DIRECT",
    "EACH",
    "EACH_PART",
    "INTERLEAVED",
    "LOAD",
    "ORDERS",
    "PADDED",
    "PANEL",
    "PANELS",
    "WHOLE",
    "Interleave",
    "StepNames",
    "StreamedWindow",
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
    "loop_order",
    "offered",
    "outer_axes",
    "outer_tile_order",
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
