"""When a stage may be computed on each finished element of another, instead of in a loop of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from autosched.ir.program import Axis, Program, Stage
from autosched.ir.value import Index
from autosched.logic import Int, Var, affine
from autosched.logic.expr import substitute_int

_MOST_AXES = 6  # 720 correspondences; every one is checked by affine equality


@dataclass(frozen=True)
class Epilogue:
    """`consumer` at its axes reads what `producer` wrote at the axes they correspond to: `axes` maps the producer's
    spatial axes to the consumer's."""

    producer: str
    consumer: str
    axes: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        pairs = ", ".join(p if p == c else f"{p} = {c}" for p, c in self.axes)
        return f"{self.consumer} on each finished element of {self.producer} ({pairs})"


def fusable_epilogue(producer: Stage, consumer: Stage, between: Sequence[Stage] = ()) -> Epilogue | None:
    """The axis correspondence under which `consumer` may follow on each finished element of `producer`, or None.

    It may where the consumer is elementwise over exactly the producer's spatial axes and unguarded, every read of the
    producer's target (that of `+=` included) is of the element just finished, nothing that it writes is read by the
    producer, and no stage in `between` them in the text touches what either of them shares with it.
    """
    target = producer.assign.tensor
    if consumer.init is not None or consumer.reduction or consumer.guards or not _elementwise(consumer):
        return None
    if consumer.assign.tensor != target and consumer.assign.tensor in {r.tensor for r in producer.reads}:
        return None
    if any(_touches(stage, producer, consumer) for stage in between):
        return None
    elements = [r.index for r in consumer.reads if r.tensor == target]
    if consumer.assign.tensor == target:
        elements.append(consumer.assign.index)
        if consumer.assign.op == "=" and len(elements) == 1:
            return None  # overwrites without reading: nothing flows
    if not elements or len(producer.spatial) != len(consumer.axes) or len(consumer.axes) > _MOST_AXES:
        return None
    own = {a.name for a in producer.axes}
    for order in permutations(consumer.axes):
        if any(p.name != c.name and c.name in own for p, c in zip(producer.spatial, order, strict=True)):
            continue  # in a loop that both share, only elements of the same iteration are finished
        names = {p.name: Var(c.name) for p, c in zip(producer.spatial, order, strict=True)}
        if all(_same_range(p, c, names) for p, c in zip(producer.spatial, order, strict=True)) and all(
            _same_element(producer.assign.index, index, names) for index in elements
        ):
            pairs = tuple((p.name, c.name) for p, c in zip(producer.spatial, order, strict=True))
            return Epilogue(producer.name, consumer.name, pairs)
    return None


def epilogues(program: Program) -> tuple[Epilogue, ...]:
    """All pairs of stages that may be fused this way, each pair on its own, in textual order."""
    stages = program.stages
    pairs = ((m, n) for m in range(len(stages)) for n in range(m + 1, len(stages)))
    found = (fusable_epilogue(stages[m], stages[n], stages[m + 1 : n]) for m, n in pairs)
    return tuple(e for e in found if e is not None)


def _elementwise(stage: Stage) -> bool:
    """Each axis is a subscript of its own, so that every instance writes its own element."""
    alone = {part.name for part in stage.assign.index if isinstance(part, Var)}
    return {a.name for a in stage.axes} <= alone


def _touches(stage: Stage, producer: Stage, consumer: Stage) -> bool:
    writes = stage.assign.tensor
    reads = {r.tensor for r in stage.reads}
    moved = {consumer.assign.tensor, *(r.tensor for r in consumer.reads)}
    return writes in moved or writes == producer.assign.tensor or consumer.assign.tensor in reads


def _same_range(p: Axis, c: Axis, names: dict[str, Var]) -> bool:
    return all(_equal(substitute_int(a, names), b) for a, b in ((p.lower, c.lower), (p.upper, c.upper)))


def _same_element(written: tuple[Index, ...], read: tuple[Index, ...], names: dict[str, Var]) -> bool:
    return len(written) == len(read) and all(
        isinstance(w, Int) and isinstance(r, Int) and _equal(substitute_int(w, names), r)
        for w, r in zip(written, read, strict=True)
    )


def _equal(a: Int, b: Int) -> bool:
    """Equal for all values of their variables; quasi-affine expressions only where they are the same tree."""
    if a == b:
        return True
    x, y = affine(a), affine(b)
    return x is not None and y is not None and x.plus(y, -1) == type(x)()
