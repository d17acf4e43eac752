"""Wishes that contradict each other: which ones, with their numbers, and what is nearest; soon in large spaces, too."""

from __future__ import annotations

import re

import pytest
from support.plans import machine, plans_of
from support.programs.one_pass import one_pass_plans

from autosched.ir import workload
from autosched.tiling.space.request import request
from autosched.tiling.space.space import Space


@pytest.fixture(scope="module")
def large() -> Space:
    (plan,) = one_pass_plans(workload("attention", h=2, n=512, l=512, d=64), machine(), sizes=((64, 256),))
    assert plan.space.size > 10**15
    return plan.space


def test_only_wishes_that_contradict_each_other_are_named(large: Space) -> None:
    rows, columns = (d.name for d in large.decisions if "S_block.reg_" in d.name)
    wanted: dict[str, int | str] = {d.name: d.domain[0] for d in large.decisions[:60] if "S_block" not in d.name}
    said = str(request(large, {**wanted, rows: 28, columns: 8})).splitlines()
    assert re.match(r"no schedule: [\d,]+ (instructions in one loop body|vector registers) > \d+ and ", said[0])
    assert {word for word in said[0].split() if word in large.position} == {rows, columns}
    assert said[1:]
    for line in said[1:]:
        assert line.startswith((f"  nearest: {rows}=", f"  nearest: {columns}="))
        assert len(line.split()) == 2


def test_the_nearest_rows_have_all_other_wishes(large: Space) -> None:
    rows, columns = (d.name for d in large.decisions if "S_block.reg_" in d.name)
    found = request(large, {rows: 28, columns: 8})
    assert found.row is None
    assert len(found.nearest) == 3
    for near in found.nearest:
        assert large.why_not(large.row_of(near.values)) == []
        assert (near.values[rows] == 28) != (near.values[columns] == 8)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [({"threads": 4, "split": "i", "reg_i": 8}, "4 threads > 1 tiles of the split axis")],
)
def test_rules_say_their_numbers(wanted: dict[str, int | str], said: str) -> None:
    plan = next(p for p in plans_of(workload("matmul", m=8, n=64, k=64), machine(), threads=4) if p.tensor_parts)
    assert said in str(request(plan.space, wanted))
