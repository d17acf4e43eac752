"""The clock of threads side by side looks at a program once for all rows, and not once a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.plans import plans_of

from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.gpu import team_bytes
from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.tiling.plans.plan import Plan, WarpCooperativePart


def team_plan() -> Plan:
    program = workload("depthwise_conv2d", h=14, w=14, c=32)
    plans = plans_of(program, load_target("nvidia-h100"))
    return next(p for p in plans if any(isinstance(part, WarpCooperativePart) for part in p.parts))


def test_subscripts_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = team_plan()
    ids = plan.space.enumerate(limit=200).ids
    asked: list[Any] = []
    extents = team_bytes._extents

    def counted(*each: Any) -> list[int]:
        asked.append(each)
        return extents(*each)

    monkeypatch.setattr(team_bytes, "_extents", counted)
    one = clock(plan, plan.space.values(ids[:1]))["total"]
    once = len(asked)
    every = clock(plan, plan.space.values(ids))["total"]
    assert len(ids) > 20
    assert len(asked) == 2 * once
    assert np.asarray(every)[0] == np.asarray(one)[0]
