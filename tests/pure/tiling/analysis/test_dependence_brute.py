"""Every verdict against its definition, by enumerating all pairs of iterations of small random programs."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.loop_trace import Instance, contents, element, owners, run
from support.match.examples import examples

from autosched.ir import Program, parse
from autosched.tiling.analysis.dependence import Conflict, Dependences, analyse

AXES = ("i", "j", "p")


@st.composite
def subscripts(draw: st.DrawFn, axes: tuple[str, ...]) -> str:
    terms = [f"{c} * {a}" for a in axes if (c := draw(st.sampled_from([0, 0, 1, 1, 1, 2, 3, -1])))]
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


@pytest.mark.slow
@examples(80)
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


@pytest.mark.slow
@examples(80)
@given(programs())
def test_what_is_called_free_to_move_may_be_moved(text: str) -> None:
    """Groups run one after the other; in groups of one stage independent axes go outside, backwards, then the serial
    ones in their order, then reductions backwards. The contents are those of the program."""
    program = parse(text)
    found = analyse(program)
    trace = list(run(program.body, {}))
    by_stage = owners(program, trace)
    order: list[Instance] = []
    for group in found.groups:
        timed = sorted((pair for name in group for pair in by_stage[name]), key=lambda pair: pair[0])
        if len(group) == 1:
            stage = found.stage(group[0])

            def key(
                pair: tuple[int, Instance],
                free: tuple[str, ...] = stage.of_kind("independent"),
                held: tuple[str, ...] = stage.of_kind("serial"),
                summed: tuple[str, ...] = stage.of_kind("reduction"),
            ) -> tuple[int, ...]:
                time, i = pair
                first = -(10**6)  # an initialisation stands before the loops that it is not in
                backwards = [[-i.at[n] if n in i.at else first for n in names] for names in (free, summed)]
                return (*backwards[0], *(i.at.get(n, first) for n in held), *backwards[1], time)

            timed.sort(key=key)
        order += [i for _, i in timed]
    assert contents(order) == contents(trace), f"{text}\n{found}"


@pytest.mark.slow
@examples(40)
@given(programs())
def test_a_symbolic_size_is_its_worst_value(text: str) -> None:
    """`range(3)` becomes `range(n)` with n in 1..3: an axis is what it is for the worst n."""
    text = text.replace("X: f32[1])", "X: f32[1], *, n=3)").replace("range(3)", "range(n)")
    rank = ["independent", "reduction", "serial"]
    worst: dict[tuple[str, str], int] = {}
    together: set[tuple[str, str]] = set()
    for n in (1, 2, 3):
        found = analyse(parse(text, sizes={"n": n}))
        together |= {(c.earlier, c.later) for c in found.carried}
        for stage in found.stages:
            for a in stage.axes:
                worst[stage.stage, a.axis] = max(worst.get((stage.stage, a.axis), 0), rank.index(a.kind))
    symbolic = analyse(parse(text, sizes={"n": "1..3"}))
    assert {(s.stage, a.axis): rank.index(a.kind) for s in symbolic.stages for a in s.axes} == worst, text
    assert {(c.earlier, c.later) for c in symbolic.carried} == together, text
