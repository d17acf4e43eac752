"""When a stage may be computed on each element that another one begins with or finishes, instead of in a loop of its
own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.value import Index, reads
from autosched.logic import Affine, Const, Int, Var, affine
from autosched.logic.walk import substitute_int

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


Fused: TypeAlias = tuple[Stage, Mapping[str, str]]
"""A stage that already follows on each element, and its axes in terms of the producer's (consumer to producer)."""


def fusable_epilogue(
    producer: Stage,
    consumer: Stage,
    between: Sequence[Stage] = (),
    fused: Sequence[Fused] = (),
    through: bool = False,
) -> Epilogue | None:
    """The axis correspondence under which `consumer` may follow on each finished element of `producer`, or None.

    The producer's spatial axes are taken to be independent, and itself to be in no group with others (`analyse` says).

    It may where the consumer is elementwise over exactly the producer's spatial axes and unguarded, every read of the
    producer's target (that of `+=` included) is of the element just finished, nothing that it writes is read by the
    producer, and no stage in `between` them in the text touches what either of them shares with it. Stages in `fused`
    stand between them too, and run on each element before the consumer: what they share must be that very element.
    `through`: a consumer that reads nothing of the producer may read what one of these made of its element.
    """
    target = producer.assign.tensor
    if consumer.init is not None or consumer.reduction or consumer.guards or not _elementwise(consumer):
        return None
    if consumer.assign.tensor in _read_by(producer):
        return None
    if any(_touches(stage, producer, consumer) for stage in between):
        return None
    elements = [r.index for r in consumer.reads if r.tensor == target]
    if consumer.assign.tensor == target:
        elements.append(consumer.assign.index)
        if consumer.assign.op == "=" and len(elements) == 1:
            return None  # overwrites without reading: nothing flows
    if not elements and not through:
        return None
    ways = corresponding(producer, consumer, elements) if elements else _through(consumer, fused)
    for back in ways:
        if all(_order_kept(other, (consumer, back)) for other in (*fused, (consumer, back))):
            return Epilogue(producer.name, consumer.name, tuple((p, c) for c, p in back.items()))
    return None


def _through(consumer: Stage, fused: Sequence[Fused]) -> Iterator[dict[str, str]]:
    """The axes of a consumer in terms of the producer's, where it reads what one of the `fused` stages (the last that
    it reads at all) made of the element."""
    for stage, axes in reversed(fused):
        elements = [r.index for r in consumer.reads if r.tensor == stage.assign.tensor]
        if elements:
            for back in corresponding(stage, consumer, elements):
                yield {c: axes[own] for c, own in back.items()}
            return


def fusable_start(
    before: Stage, sums: Stage, between: Sequence[Stage] = (), behind: Sequence[Stage] = ()
) -> dict[str, str] | None:
    """The axes of `before` in terms of those of `sums`, where each of these sums may begin with what `before` makes of
    its element, or None: `A[i, e] = A[i, e] * f[i]` in front of `A[i, e] += …`.

    It may where `before` is elementwise over exactly the spatial axes of `sums` and unguarded, every read of its target
    is of the element that it writes, `sums` reads its target for nothing else, and no stage in `between` them in the
    text touches the target or writes what `before` reads; nor do stages `behind` write that, which run on each finished
    element.
    """
    target = before.assign.tensor
    if sums.assign.tensor != target or sums.assign.op == "=" or sums.init is not None:
        return None
    if before.init is not None or before.reduction or before.guards or not _elementwise(before):
        return None
    if target in _read_by(sums) or any(r.tensor == target and r.index != before.assign.index for r in before.reads):
        return None
    moved = _read_by(before)
    if (moved - {target}) & {s.assign.tensor for s in behind}:
        return None
    if any(s.assign.tensor in moved | {target} or target in _read_by(s) for s in between):
        return None
    return next(corresponding(sums, before, (before.assign.index,)), None)


def corresponding(
    producer: Stage, other: Stage, elements: Sequence[tuple[Index, ...]]
) -> Iterator[dict[str, str]]:
    """The axes of an elementwise stage in terms of the producer's spatial ones, such that `elements`, at the stage's
    axes, are the one that the producer writes: all there are."""
    if len(producer.spatial) != len(other.axes) or len(other.axes) > _MOST_AXES:
        return
    own = {a.name for a in producer.axes}
    for order in permutations(other.axes):
        if any(p.name != c.name and c.name in own for p, c in zip(producer.spatial, order, strict=True)):
            continue  # in a loop that both share, only elements of the same iteration are at hand
        names = {p.name: Var(c.name) for p, c in zip(producer.spatial, order, strict=True)}
        if all(_same_range(p, c, names) for p, c in zip(producer.spatial, order, strict=True)) and all(
            _same_element(producer.assign.index, index, names) for index in elements
        ):
            yield {c.name: p.name for p, c in zip(producer.spatial, order, strict=True)}


def epilogues(program: Program) -> tuple[Epilogue, ...]:
    """All pairs of stages that may be fused this way, each pair on its own, in textual order."""
    stages = program.stages
    pairs = ((m, n) for m in range(len(stages)) for n in range(m + 1, len(stages)))
    found = (fusable_epilogue(stages[m], stages[n], stages[m + 1 : n]) for m, n in pairs)
    return tuple(e for e in found if e is not None)


def epilogue_chain(producer: Stage, behind: Sequence[Stage], through: bool = False) -> tuple[Epilogue, ...]:
    """The longest run of the stages `behind` the producer that may all follow on each finished element, in order;
    `through`: also on what others of them made of it."""
    fused: list[Fused] = []
    chain: list[Epilogue] = []
    for consumer in behind:
        found = fusable_epilogue(producer, consumer, fused=fused, through=through)
        if found is None:
            break
        chain.append(found)
        fused.append((consumer, {c: p for p, c in found.axes}))
    return tuple(chain)


def _order_kept(first: Fused, second: Fused) -> bool:
    """Whether running both on each element in turn is running all of `first` before all of `second`: where they meet in
    a tensor, one of them writing, both touch the same element at the same point. (Of a stage with itself: whether its
    elements may be computed in any order.)"""
    (a, a_axes), (b, b_axes) = first, second
    a_names, b_names = ({c: Var(p) for c, p in axes.items()} for axes in (a_axes, b_axes))
    for x in (a.target, *a.reads):
        for y in (b.target, *b.reads):
            if x.tensor != y.tensor or x.tensor not in (a.assign.tensor, b.assign.tensor):
                continue
            if not _same_element(x.index, tuple(_renamed(i, b_names) for i in y.index), a_names):
                return False
    return True


def _renamed(index: Index, names: Mapping[str, Var]) -> Index:
    return substitute_int(index, names) if isinstance(index, Int) else index


def _read_by(stage: Stage) -> set[str]:
    """The tensors that a stage reads, for its initial value too."""
    return {r.tensor for r in (*stage.reads, *(reads(stage.init) if stage.init is not None else ()))}


def _elementwise(stage: Stage) -> bool:
    """Whether every instance writes its own element: each axis is counted by one subscript, alone or as a digit
    (`g * 16 + o`, `o < 16`)."""
    axes, told = {a.name: a for a in stage.axes}, set[str]()
    for part in stage.assign.index:
        form = affine(part) if isinstance(part, Int) else None
        names = [] if form is None else [n for n in form.coefficients if n in axes]
        if form is not None and not told & set(names) and _counts(form, [axes[n] for n in names]):
            told |= set(names)
    return told == set(axes)


def _counts(form: Affine, axes: list[Axis]) -> bool:
    """Whether no two places of the axes have one value: each step is longer than all shorter ones together."""
    if len(axes) == 1:
        return form.coefficient(axes[0].name) != 0
    reach = 0
    for axis in sorted(axes, key=lambda a: abs(form.coefficient(a.name))):
        step = abs(form.coefficient(axis.name))
        if step <= reach or not (isinstance(axis.lower, Const) and isinstance(axis.upper, Const)):
            return False
        reach += step * max(0, axis.extent - 1)
    return True


def _touches(stage: Stage, producer: Stage, consumer: Stage) -> bool:
    writes = stage.assign.tensor
    moved = {consumer.assign.tensor, *_read_by(consumer)}
    return writes in moved or writes == producer.assign.tensor or consumer.assign.tensor in _read_by(stage)


def _same_range(p: Axis, c: Axis, names: Mapping[str, Var]) -> bool:
    return all(_equal(substitute_int(a, names), b) for a, b in ((p.lower, c.lower), (p.upper, c.upper)))


def _same_element(written: tuple[Index, ...], read: tuple[Index, ...], names: Mapping[str, Var]) -> bool:
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
