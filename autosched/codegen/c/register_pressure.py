"""Register tiles that leave a compiler few registers to spare, and the loops that carry their sums."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from autosched.backends import backend_of
from autosched.codegen.analysis.access import at_lane, classify, flat_offset
from autosched.codegen.tree.kernel import Assign, For, IntrinsicCall, Kernel, Stmt, bodies, statements
from autosched.ir.value import Read, is_plain, walk
from autosched.logic import Affine, Const, affine


def high_pressure_sums(kernel: Kernel) -> frozenset[str]:
    """The sums that take, with their instructions' operands, more than half of the isa's vector registers: operands of
    a second round do not fit beside them. Not those of portable code, whose vectors may be wider than registers."""
    taken: dict[str, set[str]] = {}
    features: dict[str, set[str]] = {}
    for call in statements(kernel.main.body):
        if isinstance(call, IntrinsicCall):
            features.setdefault(sums_of(call), set()).update(call.intrinsic.requires)
            taken.setdefault(sums_of(call), set()).update(ref.buffer for ref in call.operands.values())
    isa = backend_of(kernel.isa).c

    def registers(names: set[str]) -> int:
        buffers = (kernel.buffers[name] for name in names)
        return sum(prod(b.shape[:-1]) for b in buffers if b.scope == "register")

    return frozenset(s for s, held in taken.items() if 0 < isa.vector_registers(features[s]) < 2 * registers(held))


def shared_operands(kernel: Kernel, sums: frozenset[str]) -> frozenset[str]:
    """Operands of one register that several instructions on some of `sums` take in turn, each time with one element, or
    one group of them, in all lanes."""
    found = set[str]()
    for call in statements(kernel.main.body):
        if isinstance(call, IntrinsicCall) and sums_of(call) in sums:
            found |= {ref.buffer for ref in call.operands.values() if prod(kernel.buffers[ref.buffer].shape[:-1]) == 1}
    return frozenset(name for name in found - sums if kernel.buffers[name].scope == "register")


def repeats_memory(stmt: Assign, kernel: Kernel) -> bool:
    """Whether the lanes of an assignment are one element of memory, or one group of elements."""
    read = stmt.value
    if not isinstance(read, Read) or stmt.lane is None or not is_plain(read.index):
        return False
    buffer = kernel.buffers[read.tensor]
    return buffer.scope != "register" and classify(read.index, buffer.shape, stmt.lane).kind in ("group", "uniform")


def sums_of(call: IntrinsicCall) -> str:
    return call.operands[call.intrinsic.accumulator.name].buffer


def slides(loop: For, sums: frozenset[str], kernel: Kernel) -> bool:
    """Whether `loop`, and no loop inside it that is not unrolled, adds to some of `sums` from round to round, and loads
    in a round what another load of it had in the round before: a window that slides. Compilers keep that."""
    inside = list(_own(loop.body))
    added = {sums_of(stmt) for stmt in inside if isinstance(stmt, IntrinsicCall)}
    begun = {stmt.buffer for stmt in inside if isinstance(stmt, Assign)}
    if not added & sums - begun:
        return False
    spans = {f.var: (f.upper.value - f.lower.value, f.step) for f in inside
             if isinstance(f, For) and isinstance(f.lower, Const) and isinstance(f.upper, Const)}  # fmt: skip
    loads: dict[tuple[str, tuple[tuple[str, int], ...]], set[int]] = {}
    for stmt in inside:
        for name, form in _loads(stmt, kernel):
            ahead = form.coefficient(loop.var) * loop.step
            if any(_within(ahead, form.coefficient(var) * step, span // step) for var, (span, step) in spans.items()):
                return True
            others = loads.setdefault((name, tuple(sorted(form.coefficients.items()))), set())
            if ahead and others & {form.constant + ahead, form.constant - ahead}:
                return True
            others.add(form.constant)
    return False


def adds(stmt: Stmt, sums: frozenset[str]) -> bool:
    """Whether a statement, or one inside it, adds to some of `sums`."""
    return any(isinstance(s, IntrinsicCall) and sums_of(s) in sums for s in statements((stmt,)))


def finishes(stmt: Stmt, sums: frozenset[str], kernel: Kernel) -> bool:
    """Whether a statement, or one inside it, combines some of `sums` with memory."""
    for inner in statements((stmt,)):
        if isinstance(inner, Assign):
            read = {node.tensor for node in walk(inner.value) if isinstance(node, Read)}
            if read & sums and any(kernel.buffers[name].scope not in ("register", "matrix") for name in read):
                return True
    return False


def _within(ahead: int, apart: int, count: int) -> bool:
    """Whether one of `count` places, each `apart` from the one before, is `ahead` of another."""
    return bool(ahead and apart) and ahead % apart == 0 and abs(ahead // apart) < count


def _loads(stmt: Stmt, kernel: Kernel) -> Iterator[tuple[str, Affine]]:
    """What an assignment reads of memory: the buffer, and the offset of the first lane in elements."""
    if not isinstance(stmt, Assign):
        return
    for read in walk(stmt.value):
        if isinstance(read, Read) and kernel.buffers[read.tensor].scope != "register" and is_plain(read.index):
            index = at_lane(read.index, stmt.lane.var) if stmt.lane else read.index
            form = affine(flat_offset(kernel.buffers[read.tensor], index))
            if form is not None:
                yield read.tensor, form


def _own(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements of a loop's body, but for those of loops in it that stay loops."""
    for stmt in body:
        yield stmt
        if not isinstance(stmt, For) or stmt.kind == "unrolled":
            for inner in bodies(stmt):
                yield from _own(inner)
