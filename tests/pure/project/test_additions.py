"""What CONTRIBUTING says of additions: an instruction and a workload are a file each, a strategy is a class, and a
tuning uses all three together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from support.plug_ins import PlugIn

from autosched import api
from autosched.costmodel.protocol import CostModel
from autosched.machine.catalogue import load_target
from autosched.search.request import TuneRequest
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import TrialHistory, draw
from autosched.search.tuning.tune import tune
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate

INSTRUCTION = """
isa: portable
intrinsics:
  - name: absdiff.u8.u32.v8
    summary: "8 lanes: distances of unsigned bytes, added up."
    semantics: |
      def absdiff(a: u8[8], b: u8[8], c: u32[8]):
          for i in range(8):
              c[i] += u32(max(a[i], b[i]) - min(a[i], b[i]))
    emit:
      llvm: |
        %{g} = icmp ugt <8 x i8> {a}, {b}
        %{x} = sub <8 x i8> {a}, {b}
        %{y} = sub <8 x i8> {b}, {a}
        %{d} = select <8 x i1> %{g}, <8 x i8> %{x}, <8 x i8> %{y}
        %{w} = zext <8 x i8> %{d} to <8 x i32>
        add <8 x i32> {c}, %{w}
    timing: {latency: 4, interval: 1, source: "unverified"}
"""
WORKLOAD = """
def distances(A: u8[m, k], B: u8[k, n], C: u32[m, n], *, m=8, n=16, k=8):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += u32(max(A[i, p], B[p, j]) - min(A[i, p], B[p, j]))
"""


class Mine:
    """Any legal rows."""

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        self.space, self.memory = space, TrialHistory(space)

    def propose(self, n: int) -> list[Candidate]:
        rows = draw(self.space, self.memory, n, np.random.default_rng(len(self.memory)))
        self.memory.take(rows)
        return self.space.candidates(rows)

    def observe(self, trials: Sequence[Trial]) -> None:
        self.memory.observe(trials)


def test_an_instruction_a_workload_and_a_strategy_meet(tmp_path: Path, plug_in: PlugIn) -> None:
    plug_in("autosched.strategies", Mine)
    (tmp_path / "absdiff.yaml").write_text(INSTRUCTION)
    request = TuneRequest(
        api.parse(WORKLOAD),
        load_target("portable"),
        catalogue=api.catalogue([tmp_path / "absdiff.yaml"]),
        only=("portable/absdiff*",),
        device="simulator",
        strategy="mine",
        trials=3,
    )
    tuned, _ = tune(request)
    trials = tuned.study.trials
    assert {t.measurement.status for t in trials} == {"ok"}
    assert all("absdiff.u8.u32.v8" in t.plan for t in trials)
