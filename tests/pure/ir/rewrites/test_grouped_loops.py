"""Loops over members of groups, as loops over groups and one inside."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched import ir
from autosched.ir.rewrites.grouped_loops import split_groups
from autosched.ir.rewrites.rewrite import simplify

HEADS = """
def heads(Q: f32[h, 3], K: f32[hk, 5, 3], Y: f32[h, 5], *, h=8, group=4):
    hk = h // group
    S: f32[h, 5]
    for b, j in grid(h, 5):
        S[b, j] = 0
        for p in range(3):
            S[b, j] += Q[b, p] * K[b // group, j, p]
    for c, j in grid(h, 5):
        Y[c, j] = S[c, j] * 2.0
"""


def test_members_are_a_loop_of_their_own() -> None:
    found = split_groups(ir.parse(HEADS))
    assert found is not None
    text = str(simplify(found.after)[0])
    assert "S[b * 4 + b_member, j] += Q[b * 4 + b_member, p] * K[b, j, p]" in text
    assert "Y[c * 4 + c_member, j_2] = S[c * 4 + c_member, j_2] * 2.0" in text
    assert found.proof == (
        "b takes the values b * 4 + b_member in their order, each once",
        "c takes the values c * 4 + c_member in their order, each once",
    )


@pytest.mark.parametrize(
    ("sizes", "index"),
    [
        ({"h": 4, "group": 4}, "b // group"),
        ({"h": 8, "group": 1}, "b // group"),
        ({"h": 6, "group": 4}, "b // group"),
        ({"h": 8, "group": 4}, "(b + 1) // group"),
    ],
    ids=["one group", "groups of one", "part of a group", "groups that begin elsewhere"],
)
def test_what_has_no_whole_groups_stays(sizes: dict[str, int], index: str) -> None:
    text = HEADS.replace("b // group", index).replace("hk = h // group", "hk = h")
    assert split_groups(ir.parse(text, sizes=sizes)) is None


def random_text(seed: int) -> str:
    """Two to four statements in a row over members of groups, of one size or of two that meet in one subscript."""
    r = Random(seed)
    inner, outer = r.choice([2, 3, 4]), r.choice([1, 2])
    size, count, n = inner * outer, r.choice([2, 3]), r.choice([1, 3])
    h = size * count
    shared = r.choice([f"K[b // {inner}, j]", f"K[b // {size}, j] * K[b // {inner}, j]", f"K[b // {inner} + j, 0]"])
    guard = r.choice(["", f"if b // {inner} <= j + 1:\n                ", f"if b < {h - 1}:\n                "])
    first = "for b in range({h}):\n        for j in range({n}):" if r.random() < 0.3 else "for b, j in grid({h}, {n}):"
    second = r.choice(["S[c, j] + Q[c]", f"S[c, j] * K[c // {inner}, 0]", "max(S[c, j], Q[c])"])
    return (
        f"def f(Q: f32[{h}], K: f32[{h + n}, {n}], Y: f32[{h}, {n}], Z: f32[{h}]):\n"
        f"    S: f32[{h}, {n}]\n"
        f"    {first.format(h=h, n=n)}\n            S[b, j] = Q[b]\n            {guard}S[b, j] += {shared} * Q[b]\n"
        f"    for c, j in grid({h}, {n}):\n        Y[c, j] = {second}\n"
        f"    for d in range({h}):\n        Z[d] = 0\n        for j in range({n}):\n            Z[d] += S[d, j]\n"
    )


@examples(40)
@given(st.integers(0, 1 << 30))
def test_the_same_bits(seed: int) -> None:
    before = ir.parse(random_text(seed))
    found = split_groups(before)
    assert found is not None
    after, _ = simplify(found.after)
    assert ir.parse(str(after)) == after
    rng = np.random.default_rng(seed)
    data = {n: rng.normal(size=before.tensors[n].extents).astype(np.float32) for n in before.inputs}
    want, got = ir.run(before, data), ir.run(after, data)
    for name in before.outputs:
        np.testing.assert_array_equal(want[name], got[name])
