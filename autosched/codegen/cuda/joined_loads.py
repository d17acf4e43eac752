"""Elements of memory that neighbouring results read, loaded together in front of these.

    alignas(8) int8_t W_run[8];
    copy<8>(W_run, &W[…]);
    for (int x = 0; x < 8; ++x) row[x] = f(W_run[x]);            in place of f(W[… + x]): eight loads of a byte

Elements whose places are known where a trip of a loop begins (scales of a group of weights) are loaded before the trip
waits for others (`Early`).
"""

from __future__ import annotations

from collections.abc import Iterator

from autosched.codegen.analysis.access import at_lane, flat_offset
from autosched.codegen.cuda.scope import CudaScope, Early
from autosched.codegen.cuda.types import element_type
from autosched.codegen.cuda.view import PEER
from autosched.ir.value import Read, Select, Value, children, is_plain
from autosched.logic import Const, Int, free_vars

WIDEST = 16  # bytes of one access


def load_runs(
    scope: CudaScope, value: Value, inside: str, width: int, always: bool = False
) -> tuple[list[str], dict[Read, str]]:
    """Statements that load what `width` results read of neighbours in memory, and what then stands for each read.
    `value` is the result number `inside` of a group; what only one side of a choice reads stays where it is. `always`:
    the results are computed under no condition, so what can be loaded early is."""
    lines: list[str] = []
    found: dict[Read, str] = {}
    for read in dict.fromkeys(_always_read(value)):
        if not is_plain(read.index) or not _run(scope, read, read.index, inside, width):
            continue
        before = sum(r.tensor == read.tensor for r in found)
        name = scope.names.local(f"{read.tensor}_run{before + 1 if before else ''}")
        dtype = scope.buffer(read.tensor).dtype
        each = min(width, WIDEST // dtype.bytes)
        scope.used.headers.add("copy")
        early = scope.early if always else None
        first_place = flat_offset(scope.buffer(read.tensor), at_lane(read.index, inside, Const(0)))
        to_print = early.lines if early is not None and _known(scope, read.tensor, first_place, early) else lines
        to_print.append(f"alignas({each * dtype.bytes}) {element_type(dtype)} {name}[{width}];")
        for first in range(0, width, each):
            from_ = scope.address(read.tensor, at_lane(read.index, inside, Const(first)))
            to = f"&{name}[{first}]" if first else name
            to_print.append(f"copy<{each * dtype.bytes}>({to}, {from_});")
        found[read] = f"{name}[{scope.spell(inside)}]"
    return lines, found


def _known(scope: CudaScope, tensor: str, place: Int, early: Early) -> bool:
    """Whether the launch leaves the tensor in memory as it is, and the place is known where the trip begins."""
    if scope.buffer(tensor).scope != "global" or tensor in scope.written:
        return False
    return free_vars(scope.simplifier.number(place)) <= early.known | scope.fixed


def _always_read(value: Value) -> Iterator[Read]:
    """Reads that are made whatever the data and the conditions are."""
    if isinstance(value, Read):
        yield value
    elif not isinstance(value, Select):
        for child in children(value):
            yield from _always_read(child)


def _run(scope: CudaScope, read: Read, index: tuple[Int, ...], inside: str, width: int) -> bool:
    """Whether elements of memory lie together, on a multiple of their size."""
    if read.tensor in scope.layouts or (buffer := scope.buffer(read.tensor)).scope == PEER:
        return False
    first = scope.simplifier.sum(flat_offset(buffer, at_lane(index, inside, Const(0))))
    if scope.simplifier.multiple(first.node()) % width:
        return False
    for x in range(1, width):
        apart = scope.simplifier.sum(flat_offset(buffer, at_lane(index, inside, Const(x)))).plus(first, -1)
        if apart.terms or apart.constant != x:
            return False
    return True
