"""Quotients and remainders that the bounds of loops decide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched import ir
from autosched.ir.rewrites.quotients import fold_quotients
from autosched.ir.rewrites.rewrite import simplify

GROUPED = """
def f(Q: f32[h, 3], K: f32[1, 3], Y: f32[h], *, h=4):
    for i in range(h):
        Y[i] = 0
        for p in range(3):
            Y[i] += Q[i, p] * K[i // 4, p % 5]
"""


def test_one_group_is_no_group() -> None:
    after, steps = simplify(ir.parse(GROUPED))
    assert "K[0, p]" in str(after)
    (step,) = (s for s in steps if s.name == "fold quotients")
    assert step.proof == ("i // 4 is 0, as i is 0 to 3", "p // 5 is 0, as p is 0 to 2")


@pytest.mark.parametrize("index", ["(i + 5) // 4", "i // 2", "(i + 2) // 4", "(2 * i) % 5"])
def test_what_changes_stays(index: str) -> None:
    text = f"def f(K: f32[9], Y: f32[4]):\n    for i in range(1, 4):\n        Y[i] = K[{index}]\n"
    assert fold_quotients(ir.parse(text)) is None


def test_symbolic_sizes() -> None:
    program = ir.parse(GROUPED.replace("K: f32[1, 3]", "K: f32[4, 3]"), sizes={"h": (1, 9)})
    found = fold_quotients(program)
    assert found is not None
    assert "K[i // 4, p]" in str(found[0])


@examples(60)
@given(st.data())
def test_the_same_numbers(data: st.DataObject) -> None:
    """Random subscripts of two loops, one inside bounds of the other."""
    low, n = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 9))
    by, factor, offset = (data.draw(st.integers(*r)) for r in ((1, 20), (-3, 3), (-9, 9)))
    op, inner = data.draw(st.sampled_from(["//", "%"])), data.draw(st.integers(1, 7))
    form = f"(i * {factor} + j + {offset}) {op} {by}"
    text = (
        f"def f(K: f32[121], Y: f32[{low + n}, {inner}]):\n    for i in range({low}, {low + n}):\n"
        f"        for j in range({inner}):\n            Y[i, j] = K[(({form}) % 121 + 121) % 121]\n"
    )
    before = ir.parse(text)
    found = fold_quotients(before)
    after = before if found is None else found[0]
    assert ir.parse(str(after)) == after
    given_data = {"K": np.arange(121, dtype=np.float32), "Y": np.zeros((low + n, inner), np.float32)}
    arrays = {k: v for k, v in given_data.items() if k in before.inputs}
    np.testing.assert_array_equal(ir.run(after, arrays)["Y"][low:], ir.run(before, arrays)["Y"][low:])
