"""Windows are decided by trying their points; the solver, asked the same, says the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import z3
from fuzz.matches import search
from support.match.computes import made_up

from autosched.ir import workload
from autosched.logic.questions import written_to
from autosched.tensorize import match
from autosched.tensorize.addresses import tile as of_tiles

ENGINE = """
def m(d: s8[6, 6, 16], w: s8[3, 3, 16, 8], c: s32[4, 4, 8]):
    for y, x, o, r, s, k in grid(4, 4, 8, 3, 3, 16):
        c[y, x, o] += s32(d[y + r, x + s, k]) * s32(w[r, s, k, o])
"""


@pytest.mark.slow
def test_few_questions_reach_the_solver(tmp_path: Path) -> None:
    """One was asked for each of 2,000 axis maps, guard and operand."""
    with written_to(tmp_path):
        (found,) = match(workload("conv2d", t="s8", acc="s32"), [made_up(ENGINE)])
    assert found.verdict == "match"
    assert 1 <= len(list(tmp_path.iterdir())) <= 30


@pytest.mark.slow
def test_the_solver_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"elements": 0, "guards": 0}
    element, guard = of_tiles.element_tried, of_tiles.guard_tried

    def claimed(facts: Any, operand: Any, assignment: Any, tile: Any) -> Any:
        return of_tiles._two_points(facts, operand, assignment, tile)

    def elements(facts: Any, operand: Any, read: Any, assignment: Any, tile: Any) -> bool | None:
        known = element(facts, operand, read, assignment, tile)
        if known is not None:
            first, second, claim = claimed(facts, operand, assignment, tile)
            claim += first.domain + second.domain
            claim.append(z3.Or(*(first.index(i) != second.index(i) for i in read.index)))
            assert facts.ask("axes", "", claim).holds in (known, None), (operand, read, assignment)
            counts["elements"] += 1
        return known

    def guards(facts: Any, operand: Any, held: Any, assignment: Any, tile: Any) -> bool | None:
        known = guard(facts, operand, held, assignment, tile)
        if known is not None:
            first, second, claim = claimed(facts, operand, assignment, tile)
            for points in (first, second):
                hull = of_tiles._hull(facts).items()
                claim += [z3.And(low <= points.env[y], points.env[y] <= high) for y, (low, high) in hull]
            claim.append(first.condition(held) != second.condition(held))
            assert facts.ask("axes", "", claim).holds in (known, None), (operand, str(held), assignment)
            counts["guards"] += 1
        return known

    monkeypatch.setattr(of_tiles, "element_tried", elements)
    monkeypatch.setattr(of_tiles, "guard_tried", guards)
    assert not search(88, 60).wrong
    assert counts["elements"] >= 100
    assert counts["guards"] >= 20
