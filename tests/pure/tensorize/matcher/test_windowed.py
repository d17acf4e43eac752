"""Windowed operands (`a[i + k]`): every legal row computes what the program says, on an accelerator and in a CPU's
vectors; what cannot be lowered has no plan, with a reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.agreement import disagreement, expect
from support.match.examples import EXAMPLES, examples
from support.plans import covering_rows, machine
from support.programs.windowed import (
    CORE,
    WINDOWS,
    engine_text,
    group_text,
    in_vectors,
    instruction,
    line_text,
    windowed_plans,
)

import autosched
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.catalogue import load
from autosched.tiling.candidate import Candidate

LINES = {
    "fir": [{}, {"pad": 1}, {"taps": 8}, {"n": 3}, {"taps": 5}, {"guard": "x < 6"}, {"guard": "r <= x", "n": 8}],
    "unread": [{"taps": 3}, {"taps": 3, "pad": 1}],
    "strided": [{"n": 7, "stride": 2}, {"n": 7, "stride": 2, "pad": 1}],
    "holes": [{"n": 7, "taps": 2, "stride": 3}],
    "dilated": [{"n": 9, "taps": 3, "dilation": 2}, {"n": 9, "taps": 3, "dilation": 2, "pad": 2}],
    "flipped": [{"n": 9, "taps": 3}],
    "floats": [{"taps": 3, "dtypes": ("f32", "f32")}, {"taps": 3, "pad": 1, "dtypes": ("f32", "f32")}],
}
CASES = [(name, line_text(**sizes)) for name, all_sizes in LINES.items() for sizes in all_sizes] + [
    ("engine", engine_text(5, 6, 4, 8, 1, 0)),
    ("engine", engine_text(5, 6, 3, 9, 1, 1)),
    ("engine_2", engine_text(7, 8, 4, 5, 2, 1)),
    ("groups", group_text(9, 8)),
    ("groups", group_text(6, 6)),
    ("groups", group_text(5, 6, guard="p != 3")),
    ("groups", group_text(4, 8, by_groups=True)),
    ("groups_of_rows", group_text(6, 10, rows=True)),
    ("groups_of_rows", group_text(4, 6, guard="p < x + 4", rows=True)),
]
TARGETS = {"accelerator": (CORE, instruction), "vectors": (machine(), in_vectors)}


def check(text: str, intrinsic: Intrinsic, target: Target, least: int = 0, most: int = 2) -> None:
    program, plans, _ = windowed_plans(text, intrinsic, target)
    assert len(plans) >= least, f"no plan of\n{text}"
    expected = expect(program)
    for plan in plans[:most]:
        assert disagreement(plan, list(covering_rows(plan, extra=1)), expected) is None, text


EVERY = [(on, n) for n, (name, _) in enumerate(CASES) for on in TARGETS if on != "vectors" or "engine" not in name]
"""Thousands of steps are no vector instruction."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("on", "case"), EVERY)
def test_every_decision_gives_the_right_answer(on: str, case: int) -> None:
    target, made = TARGETS[on]
    name, text = CASES[case]
    check(text, made(name), target, least=1, most=1)


def test_a_guard_that_tells_points_of_one_element_apart_is_refused() -> None:
    """X[x + r] is one element at (0, 1) and at (1, 0); a fill would stand in both."""
    text = line_text(8, 4, guard="r <= x")
    _, plans, _ = windowed_plans(text, instruction("fir"))
    assert plans
    assert all("i←x" not in p.name for p in plans)


def test_an_end_that_cuts_a_sum_of_two_results_has_no_plan() -> None:
    """c[i, j] += a[i + j]: the end of one of both cuts a tile, and no choice of points is inside for all."""
    (both,) = load(
        "isa: windowed\nrequires: [windowed]\nintrinsics:\n  - name: sums\n    scope: core\n    semantics: |\n"
        "      def f(a: s8[7], b: s8[4], c: s32[4, 4]):\n"
        "        for i, j in grid(4, 4):\n          c[i, j] += s32(a[i + j]) * s32(b[j])\n"
    )
    line = "for i, j in grid({}, {}):\n  C[i, j] += s32(X[i + j]) * s32(B[j])\n"
    text = "def f(X: s8[{}], B: s8[{}], C: s32[{}, {}]):\n " + line
    check(text.format(15, 8, 8, 8, 8, 8), both, CORE, least=1)
    for m, n in ((8, 6), (6, 8), (6, 6)):
        program, plans, reasons = windowed_plans(text.format(m + n - 1, n, m, n, m, n), both)
        assert plans or any("cuts a tile" in r for r in reasons)
        for plan in plans:
            assert disagreement(plan, list(covering_rows(plan)), expect(program)) is None


def test_an_accumulator_with_elements_that_no_step_writes_has_no_plan() -> None:
    (short,) = load(
        "isa: windowed\nrequires: [windowed]\nintrinsics:\n  - name: short\n    scope: core\n    semantics: |\n"
        "      def f(a: s8[4, 4], w: s8[4], c: s32[8]):\n"
        "        for i, k in grid(4, 4):\n          c[i] += s32(a[i, k]) * s32(w[k])\n"
    )
    line = " for i in range(9):\n  for p in range(8):\n   C[i] += s32(A[i, p]) * s32(W[p])\n"
    text = f"def f(A: s8[9, 8], W: s8[8], C: s32[9]):\n{line}"
    _, plans, reasons = windowed_plans(text, short)
    assert not plans
    assert "never writes some elements of c" in reasons[0]


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str]:
    name = draw(st.sampled_from(sorted(set(WINDOWS) - {"engine", "engine_2", "floats"})))
    if name.startswith("groups"):
        guard = draw(st.sampled_from(["", "", "p != 1", "x < 5", "p <= x"]))
        size, by_groups = draw(st.integers(1, 12)), not guard and draw(st.booleans())
        k = draw(st.integers(1, 6)) * 2 if by_groups else draw(st.integers(1, 12))
        return name, group_text(size, k, guard, by_groups, rows=name != "groups")
    taps = draw(st.sampled_from([1, 2, 3, 4, 6, 8]))
    guard = draw(st.sampled_from(["", "", "r <= x", "x < 5", "r != 1", "x + r < 7", "x + r > 2 and x + r < 9"]))
    sizes = {"stride": draw(st.integers(1, 3)), "dilation": draw(st.integers(1, 2)), "pad": draw(st.integers(0, 2))}
    reverse, channels = draw(st.booleans()), draw(st.sampled_from([0, 3, 4]))
    return name, line_text(draw(st.integers(3, 12)), taps, guard=guard, reverse=reverse, channels=channels, **sizes)


@pytest.mark.slow
@examples(60 if EXAMPLES else 12)
@given(programs(), st.booleans())
def test_random_windows(case: tuple[str, str], vectors: bool) -> None:
    target, made = TARGETS["vectors" if vectors else "accelerator"]
    check(case[1], made(case[0]), target)


@pytest.mark.slow
def test_an_engine_is_measured_on_the_simulator() -> None:
    _, plans, _ = windowed_plans(engine_text(10, 10, 4, 16, 1, 1), instruction("engine"))
    device = autosched.device("simulator", target=CORE, noise=0.0)
    for row in list(covering_rows(plans[0]))[:4]:
        measured = device.measure(device.build(Candidate(plans[0], row)), "search")
        assert measured.status == "ok", measured
        assert measured.extra["verified"]
