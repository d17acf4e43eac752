"""Where a window begins that data choose: only what is one number in all of an iteration, and is there to be read."""

from __future__ import annotations

import pytest

from autosched.ir import parse
from autosched.tiling.analysis.windows import TensorWindow, Windowed, nested, windowed

LOOPS = """
def f(X: f32[4, 8], W: f32[3, 8, 8], E: s32[4], F: s32[4], Y: f32[4, 8, 8], *, w=3):
    G: s32[4]
    for g in range(4):
        G[g] = E[g]
    for b in range(4):
        STATEMENT
        for i, j in grid(8, 8):
            Y[b, i, j] = 0
        for i, j in grid(8, 8):
            GUARD
                Y[b, i, j] += X[b, i] * W[SUBSCRIPT, i, j]
"""


def body(subscript: str, guard: str = "if i < 8:", statement: str = "") -> Windowed | None:
    text = LOOPS.replace("SUBSCRIPT", subscript).replace("GUARD", guard).replace("        STATEMENT\n", statement)
    program = parse(text.lstrip(), filename="f.py")
    loops, inside = nested((program.body[-1],))
    return windowed(program, loops, inside, choose=True)


def windows(found: Windowed | None) -> dict[str, TensorWindow]:
    assert found is not None
    return found.windows


def test_a_window_begins_where_data_say() -> None:
    found = body("E[b]")
    assert windows(found)["W"].kept == (1, 2)
    assert found is not None
    (chosen,) = found.chosen
    assert (chosen.extent, chosen.moved_by) == (3, {"b"})
    assert "E" not in found.program.tensors


def test_one_choice_is_asked_once_and_a_second_one_after_it() -> None:
    found = body("E[F[b]]")
    assert found is not None
    first, second = found.chosen
    assert (first.extent, second.extent) == (4, 3)
    assert first.name in str(second.value)
    assert second.moved_by == {"b"}


@pytest.mark.parametrize("subscript", ["E[i // 2]", "E[j // 2]"])
def test_data_that_the_body_moves_are_no_choice(subscript: str) -> None:
    found = body(subscript)
    assert windows(found)["W"].kept == (0, 1, 2)
    assert found is not None
    assert not found.chosen


def test_data_that_the_body_writes_are_no_choice() -> None:
    found = body("F[b]", statement="        F[b] = E[b]\n")
    assert found is None or not found.chosen


def test_what_a_condition_keeps_from_being_read_is_no_choice() -> None:
    """E[b + 2] is none for half of the iterations, and a guard may keep G from being read before it is written."""
    for subscript, guard in (("E[b + 2]", "if b < 2:"), ("G[b]", "if F[b] > 0:"), ("E[b] // F[b]", "if F[b] > 0:")):
        found = body(subscript, guard)
        assert found is None or not found.chosen, subscript
    found = body("E[b]", "if F[b] > 0:")
    assert found is not None
    assert found.chosen


@pytest.mark.parametrize(
    ("guard", "formula"),
    [
        ("if s32(i) < F[b]:", "i_2 < b_F"),
        ("if F[b] > s32(i):", "i_2 < b_F"),
        ("if s32(i) >= F[b]:", "i_2 >= b_F"),
        ("if F[b] <= s32(i) and j < 5:", "i_2 >= b_F"),
        ("if s32(2 * i + b) < F[b]:", "b_F"),
    ],
)
def test_a_bound_from_data_is_a_size_that_is_not_known(guard: str, formula: str) -> None:
    found = body("b // 2", guard)
    assert found is not None
    (chosen,) = found.chosen
    assert found.program.symbolic["b_F"] == (0, chosen.extent - 1)
    (stage,) = [s for s in found.program.stages if s.guards]
    assert not stage.seldom
    assert formula in " and ".join(map(str, stage.guards))


@pytest.mark.parametrize(
    "guard", ["if s32(i) <= F[b]:", "if s32(i) == F[b]:", "if s32(i) - 1 < F[b]:", "if s32(i - 1) < F[b]:",
              "if s32(i) < F[i // 2]:", "if f32(i) < X[b, 0]:"],
)  # fmt: skip
def test_other_conditions_on_data_stay_that(guard: str) -> None:
    """Less than any number is another question at the ends of what a bound is held to; others are no bounds."""
    found = body("b // 2", guard)
    assert found is not None
    assert not found.chosen
    assert any(s.seldom for s in found.program.stages)
