"""Every verdict against its definition, by enumerating all pairs of iterations of small random programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from hypothesis import event, given, settings
from hypothesis import strategies as st

from autosched.ir import Program, parse
from autosched.ir.program import Assign, Guard, Loop
from autosched.ir.program import Statement as Node
from autosched.ir.value import Read, Select, Value, reads
from autosched.logic import evaluate
from autosched.tiling.dependence import Dependences, analyse

AXES = ("i", "j", "p")


@st.composite
def subscripts(draw: st.DrawFn, axes: tuple[str, ...]) -> str:
    terms = [f"{c} * {a}" for a in axes if (c := draw(st.sampled_from([0, 0, 1, 1, 1, 2, -1])))]
    plain = " + ".join([*terms, str(draw(st.integers(8, 11)))])
    return draw(st.sampled_from([plain, plain, plain, f"({plain}) // 2", f"({plain}) % 3"]))


@st.composite
def elements(draw: st.DrawFn, axes: tuple[str, ...]) -> str:
    one, two = draw(subscripts(axes)), draw(subscripts(axes))
    return draw(st.sampled_from([f"V[{one}]", f"U[{one}]", f"W[{one}, {two}]", f"W[{one}, {two}]"]))


@st.composite
def assigns(draw: st.DrawFn, axes: tuple[str, ...]) -> str:
    target, value = draw(elements(axes)), draw(elements(axes))
    if axes and draw(st.integers(0, 3)) == 0:
        value = f"({value} if {draw(st.sampled_from(axes))} < 2 else {draw(elements(axes))})"
    return f"{target} {draw(st.sampled_from(['=', '=', '+=', '+=']))} {value} + X[0]"


@st.composite
def programs(draw: st.DrawFn) -> str:
    lines: list[str] = []
    count = 0

    def body(axes: tuple[str, ...], depth: int) -> None:
        nonlocal count
        indent = "    " * (len(axes) + 1)
        for _ in range(draw(st.integers(1, 2))):
            if depth < 3 and (not axes or draw(st.booleans())):
                axis = f"{AXES[depth]}{count}"
                count += 1
                triangular = axes and draw(st.integers(0, 3)) == 0
                bounds = f"{axes[-1]}, 4" if triangular else draw(st.sampled_from(["2", "3", "1, 4", "1"]))
                lines.append(f"{indent}for {axis} in range({bounds}):")
                body((*axes, axis), depth + 1)
            elif axes and draw(st.integers(0, 4)) == 0:
                lines.append(f"{indent}if {axes[-1]} < {draw(st.integers(1, 3))}:")
                lines.append(f"{indent}    {draw(assigns(axes))}")
            else:
                lines.append(f"{indent}{draw(assigns(axes))}")

    body((), 0)
    return "def f(V: f32[40], U: f32[40], W: f32[40, 40], X: f32[1]):\n" + "\n".join(lines) + "\n"


# The oracle: run the loops, note what is touched

Element = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Instance:
    assign: Assign
    at: dict[str, int]
    reads: frozenset[Element]
    write: Element

    def meets(self, other: Instance) -> bool:
        """One element, at least one write; an accumulation reads what it writes, so that is covered by the writes."""
        return self.write == other.write or self.write in other.reads or other.write in self.reads


def run(body: tuple[Node, ...], at: dict[str, int]) -> Iterator[Instance]:
    for node in body:
        match node:
            case Loop(axis, inner):
                for n in range(evaluate(axis.lower, at), evaluate(axis.upper, at)):
                    yield from run(inner, {**at, axis.name: n})
            case Guard(condition, inner):
                if evaluate(condition, at):  # type: ignore[arg-type]
                    yield from run(inner, at)
            case Assign():
                yield Instance(node, at, frozenset(touched(node.value, at)), element(node.tensor, node.index, at))


def element(tensor: str, index: tuple[object, ...], at: dict[str, int]) -> Element:
    return tensor, tuple(int(evaluate(i, at)) for i in index)  # type: ignore[arg-type]


def touched(value: Value, at: dict[str, int]) -> Iterator[Element]:
    match value:
        case Select(condition, then, other, _):
            yield from touched(then if evaluate(condition, at) else other, at)  # type: ignore[arg-type]
        case Read(tensor, index, _):
            yield element(tensor, index, at)
        case _ if hasattr(value, "left"):
            yield from touched(value.left, at)
            yield from touched(value.right, at)
        case _:
            assert not reads(value)


def expected_kind(instances: list[Instance], axis: str, equal: tuple[str, ...] = ()) -> str:
    kind = "independent"
    for x, y in combinations([i for i in instances if axis in i.at], 2):
        if x.at[axis] == y.at[axis] or any(x.at[n] != y.at[n] for n in equal) or not x.meets(y):
            continue
        accumulation = x.assign is y.assign and x.assign.op != "="
        if not accumulation or x.write in y.reads or y.write in x.reads:
            return "serial"
        kind = "reduction"
    return kind


def owners(program: Program, trace: list[Instance]) -> dict[str, list[tuple[int, Instance]]]:
    """For each stage its instances with their times; an initialisation belongs to the next stage on its tensor."""
    places = list(dict.fromkeys(_assigns(program.body)))
    names: dict[int, str] = {}
    waiting = list(program.stages)
    for place in places:
        stage = next(s for s in waiting if s.assign.tensor == place.assign.tensor)
        names[id(place.assign)] = stage.name
        if stage.assign is place.assign:
            waiting.remove(stage)
    found: dict[str, list[tuple[int, Instance]]] = {s.name: [] for s in program.stages}
    for time, instance in enumerate(trace):
        found[names[id(instance.assign)]].append((time, instance))
    return found


@dataclass(frozen=True, eq=False)
class Place:
    assign: Assign


def _assigns(body: tuple[Node, ...]) -> Iterator[Place]:
    for node in body:
        if isinstance(node, Assign):
            yield Place(node)
        else:
            yield from _assigns(node.body)


@settings(max_examples=120, deadline=None)
@given(programs())
def test_axes_and_groups_are_what_the_definitions_say(text: str) -> None:
    program = parse(text)
    found = analyse(program)
    trace = list(run(program.body, {}))
    by_stage = owners(program, trace)
    for stage in program.stages:
        instances = [i for _, i in by_stage[stage.name]]
        names = tuple(a.name for a in stage.axes)
        for n, axis in enumerate(names):
            verdict = found.stage(stage.name).axis(axis)
            assert verdict.kind == expected_kind(instances, axis), f"{text}\n{verdict}"
            event(verdict.kind)
            if verdict.kind == "serial":
                assert verdict.in_place == (expected_kind(instances, axis, names[:n]) != "serial"), f"{text}\n{verdict}"
                assert_example(verdict.conflict, trace)
    assert_groups(text, program, found, by_stage)


def assert_example(conflict: object, trace: list[Instance]) -> None:
    """The pair of iterations in the message really touches the element, in that order."""
    from autosched.tiling.dependence import Conflict

    assert isinstance(conflict, Conflict)
    assert conflict.example is not None
    x, y = conflict.example
    sides = []
    for point, access in ((x, conflict.first), (y, conflict.second)):
        elem = element(access.tensor, access.index, point)
        times = [t for t, i in enumerate(trace) if i.at == point and elem in {i.write, *i.reads}]
        assert times, f"{access} does not happen at {point}"
        sides.append((elem, times))
    assert sides[0][0] == sides[1][0]
    assert min(sides[0][1]) <= max(sides[1][1])


def assert_groups(
    text: str, program: Program, found: Dependences, by_stage: dict[str, list[tuple[int, Instance]]]
) -> None:
    names = [s.name for s in program.stages]
    backward = {
        (a, b)
        for a, b in combinations(names, 2)
        if any(t < u and y.meets(x) for u, x in by_stage[a] for t, y in by_stage[b])
    }
    assert {(c.earlier, c.later) for c in found.carried} == backward, text
    cuts = [n for n in range(1, len(names)) if not any(a in names[:n] and b in names[n:] for a, b in backward)]
    ends = [0, *cuts, len(names)]
    assert found.groups == tuple(tuple(names[m:n]) for m, n in pairwise(ends)), text
    for group, together in zip([g for g in found.groups if len(g) > 1], found.together, strict=True):
        members = [i for n in group for _, i in by_stage[n]]
        for verdict in together.axes:
            assert verdict.kind == expected_kind(members, verdict.axis), f"{text}\n{group} {verdict}"
