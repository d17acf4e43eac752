"""The head of a kernel's body: the numbers of its block and thread, its memory and its registers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from autosched.codegen.analysis.held_registers import THREADS_OF
from autosched.codegen.cuda.fragments.fragments import LANE, THREAD
from autosched.codegen.cuda.grids import WARP, CudaGrid, first, trips
from autosched.codegen.cuda.hopper import arrivals_of, maps_of
from autosched.codegen.cuda.scope import CudaScope
from autosched.codegen.cuda.shared_memory.layout import SharedMemory
from autosched.codegen.cuda.statements import INDENT, CudaStatementPrinter
from autosched.codegen.cuda.types import element_type
from autosched.codegen.tree.kernel import WORKERS, Assign, For, TileCopy, WarpSpecialize, statements
from autosched.codegen.tree.uses import read_buffers
from autosched.escape import in_comment
from autosched.logic import Int, Var

NUMBER = ".block"
"""The block's number in the grid, from which block loops are computed."""


def block_lines(grid: CudaGrid, scope: CudaScope, shared: SharedMemory, printer: CudaStatementPrinter) -> Iterator[str]:
    """All lines of the kernel's body."""
    yield from (INDENT + line for line in _checked(grid, scope))
    ranges = {loop.var: (first(loop), first(loop) + (trips(loop) - 1) * loop.step) for loop in grid.blocks}
    total = prod(grid.counts.values())
    ranges |= {THREAD: (0, grid.block_threads - 1), LANE: (0, _lanes(grid) - 1), NUMBER: (0, max(0, total - 1))}
    workers = {s.var for s in statements(grid.body) if isinstance(s, For) and s.kind in WORKERS}
    scope.fixed = frozenset({*grid.counts, THREAD, LANE, *workers})
    scope.written = frozenset(s.buffer for s in statements(grid.body) if isinstance(s, Assign | TileCopy))
    scope.lanes, scope.block_lanes = grid.row_lanes, _lanes(grid)
    if grid.row_lanes > 1:
        scope.passed = scope.written & read_buffers(grid.body) - scope.layouts.keys()
    with scope.ranged(ranges):
        body = [INDENT + line for line in printer.body(grid.body, ())]
        memory = _shared(scope, shared.beside(scope.staging))
        frame = [*memory, *_blocks(grid, scope, total, "\n".join(body)), *_threads(grid, scope, "\n".join(body))]
        yield from (INDENT + line for line in frame)
        registers = list(_registers(scope))
        if registers:
            yield from (INDENT + line for line in registers)
        if frame or registers:
            yield ""
        arrivals = arrivals_of(grid.body, grid.worker_threads // _lanes(grid), grid.cluster)
        made = [INDENT + line for line in printer.engine.frame(shared.barriers, arrivals, maps_of(grid.body))]
        yield from made
    yield from body
    stays = any(isinstance(s, WarpSpecialize) and s.stays for s in statements(grid.body))
    if made and grid.cluster > 1 and not stays:
        yield INDENT + "meet_cluster();  // nobody leaves while others signal here"


def _checked(grid: CudaGrid, scope: CudaScope) -> Iterator[str]:
    """Both the main path and the fallback are launched; the check's result, on the device, ends one of them at once."""
    if grid.checks:
        fast = " && ".join(f"{scope.names(name)}[0] == 0" for name in grid.checks)
        yield f"if ({fast}) return;" if grid.fallback else f"if (!({fast})) return;"


def _shared(scope: CudaScope, shared: SharedMemory) -> Iterator[str]:
    if not shared.buffers:
        return
    yield f"extern __shared__ __align__({shared.alignment()}) unsigned char shared[];"
    for name, buffer in shared.buffers.items():
        offset = shared.offsets[name]
        type_ = element_type(buffer.dtype)
        at = f"shared + {offset}" if offset else "shared"
        yield f"{type_}* const {scope.names(name)} = reinterpret_cast<{type_}*>({at});  // {list(buffer.shape)}"
    for name, slots in shared.barriers.items():
        at = f"shared + {shared.offsets[name]}"
        yield f"Barrier* const {scope.names(name)} = reinterpret_cast<Barrier*>({at});  // [{slots}]"


def _blocks(grid: CudaGrid, scope: CudaScope, total: int, body: str) -> Iterator[str]:
    """Variables of the loops over blocks that the body names."""
    used = [loop for loop in grid.blocks if _names(body, scope.names.local(loop.var))]
    if not grid.blocks:
        if grid.rows and grid.block_threads > grid.row_lanes:
            yield "if (threadIdx.x != 0) return;"
        return
    cluster = f" / {grid.cluster}" if grid.cluster > 1 else ""
    if not grid.folded:
        for loop in used:
            axis = loop.kind[-1]
            number = f"blockIdx.{axis}" + (cluster if axis == "x" else "")
            yield from _named(scope, loop, number)
        return
    own = scope.spell(NUMBER)
    if grid.rows:
        each = grid.block_threads // grid.row_lanes
        mine = f"threadIdx.x / {grid.row_lanes}" if grid.row_lanes > 1 else "threadIdx.x"
        yield f"const int {own} = blockIdx.x * {each} + {mine};"
        if total % each:
            yield f"if ({own} >= {total}) return;"
    else:
        yield f"const int {own} = blockIdx.x{cluster};"
    below = total
    for loop in grid.blocks:
        below //= trips(loop)
        place: Int = Var(NUMBER) // below if below > 1 else Var(NUMBER)
        if loop is not grid.blocks[0]:
            place = place % trips(loop)
        if loop in used:
            yield from _named(scope, loop, scope.index.number(place, 5))


def _named(scope: CudaScope, loop: For, number: str) -> Iterator[str]:
    comment = f"  // {in_comment(loop.note)}" if loop.note else ""
    scaled = number if loop.step == 1 else f"{number} * {loop.step}"
    start = f" + {first(loop)}" if first(loop) else ""
    yield f"const int {scope.names.local(loop.var)} = {scaled}{start};{comment}"


def _threads(grid: CudaGrid, scope: CudaScope, body: str) -> Iterator[str]:
    """The numbers of thread, worker and lane, as far as the body uses them."""
    if grid.rows:
        if _names(body, scope.spell(LANE)):
            yield f"const int {scope.spell(LANE)} = threadIdx.x % {WARP};"
        return
    if _names(body, scope.spell(THREAD)):
        yield f"const int {scope.spell(THREAD)} = threadIdx.x;"
    seen: set[str] = set()
    for loop in (s for s in statements(grid.body) if isinstance(s, For)):
        if loop.var in seen:
            continue
        seen.add(loop.var)
        each = THREADS_OF.get(loop.kind)
        name = scope.names.local(loop.var)
        if loop.kind == "cluster" and _names(body, name):
            scope.used.headers.add("cluster")
            yield f"const int {name} = cluster_rank();"
        elif each is not None and _names(body, name):
            yield f"const int {name} = threadIdx.x{f' / {each}' if each > 1 else ''};"
    if _names(body, scope.spell(LANE)):
        yield f"const int {scope.spell(LANE)} = threadIdx.x % {_lanes(grid)};"
    for lanes, name in scope.narrow.items():
        if _names(body, name):
            yield f"const int {name} = threadIdx.x % {lanes};"


def _names(body: str, name: str) -> bool:
    """Whether the code names it; comments may have the word."""
    return re.search(rf"^(?:(?!//).)*\b{name}\b", body, re.MULTILINE) is not None


def _lanes(grid: CudaGrid) -> int:
    """Threads of a worker, of the largest there are."""
    found = [THREADS_OF[s.kind] for s in statements(grid.body) if isinstance(s, For) and s.kind in THREADS_OF]
    return max(found, default=WARP)


def _registers(scope: CudaScope) -> Iterator[str]:
    for name, layout in scope.layouts.items():
        shape = "".join(f"[{n}]" for n in layout.shape())
        together = min(16, layout.buffer.elements_per_thread * layout.dtype.bytes)  # bytes of one access
        aligned = f"alignas({together}) " if together > layout.dtype.bytes else ""
        yield f"{aligned}{layout.type} {scope.names(name)}{shape};"
