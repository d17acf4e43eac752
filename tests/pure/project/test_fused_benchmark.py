"""What the benchmark of fused chains counts and concludes, without a clock."""

from __future__ import annotations

import json
import sys
from collections import Counter
from math import prod

import numpy as np
import pytest

from autosched.ir import random_inputs
from benchmarks.common.tuning import Request, Tuned
from benchmarks.common.work import work_of
from benchmarks.fused import torch_peers
from benchmarks.fused.cases import CASES, Case, Part, attention, quantized, separable
from benchmarks.fused.command import main
from benchmarks.fused.contest import BOUND, OWN, PEER, Against, Outcome, case_from
from benchmarks.fused.rows import Row, summaries, table
from benchmarks.peers import Task

SMALLEST = {c.group: min((o for o in CASES if o.group == c.group), key=lambda o: o.operations) for c in CASES}


def request(part: Part | Case) -> Request:
    file = part.path if isinstance(part, Part) else ""
    packed = part.packed if isinstance(part, Part) else True
    return Request(part.workload, part.sizes, "nowhere", packed, file=file)


def test_every_group_has_small_cases_and_large_ones() -> None:
    names = [c.name for c in CASES]
    assert len(set(names)) == len(names)
    small, large = (Counter(c.group for c in CASES if c.small is kind) for kind in (True, False))
    assert set(small) == set(large) == {"attention", "feed_forward", "quantized", "separable"}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_kernels_apart_fit_the_chain(case: Case) -> None:
    """Tensors that share memory have as many elements of one type, and operations are those that the parts have."""
    chain = request(case).program()
    memory = {n: (t.dtype, prod(t.extents)) for n, t in chain.tensors.items() if n in chain.parameters}
    for apart in case.apart:
        programs = [request(part).program() for part in apart.parts]
        for part, program in zip(apart.parts, programs, strict=True):
            for inner, outer in part.names.items():
                tensor = program.tensors[inner]
                assert memory.setdefault(outer, (tensor.dtype, prod(tensor.extents))) == (
                    tensor.dtype,
                    prod(tensor.extents),
                )
        clamps = 0.0  # of the convolutions before the last: no part of a product
        if case.group == "separable":
            clamps = sum(2.0 * prod(p.tensors[p.outputs[0]].extents) for p in programs[:-1])
        assert sum(work_of(p).operations for p in programs) - clamps == pytest.approx(apart.operations)
        if apart.result:
            assert memory[apart.result] == memory[chain.outputs[0]]


def test_what_a_mask_leaves_out_is_not_counted() -> None:
    h, n, d = 3, 7, 5
    full, causal = attention("full", h, n, d), attention("causal", h, n, d)
    assert full.operations == 4 * h * n * n * d
    assert causal.operations == 4 * h * d * sum(i + 1 for i in range(n))
    assert causal.apart[0].operations == full.operations  # whose products have no mask


def test_cases_come_through_json() -> None:
    from dataclasses import asdict

    for case in CASES:
        assert case_from(json.loads(json.dumps(asdict(case)))) == case


def row(case: Case, *against: Against, **more: object) -> Row:
    outcome = Outcome((0.5, 1.0, 2.0), 1e9, list(against), 3, 4e9, "fma", "a CPU", notes={"SDPA": "not there"})
    return Row(case, 1, 8, Tuned("s", 1.0, trials=8), outcome, "abc", (0.1, 0.2), **more)  # type: ignore[arg-type]


def side(name: str, kind: str, ratio: float, asked: float = 0.0) -> Against:
    return Against(name, kind, (1.0, 1.0, 1.0), (ratio, ratio, ratio), asked)


def test_what_is_missed_is_said() -> None:
    case = quantized(4, 1, 64, 64, 32)
    found = row(case, side("fast", PEER, 0.5), side("slow", PEER, 2.0), side("two", OWN, 1.2, 1.3),
                side("roofline", BOUND, 0.9, 0.8))  # fmt: skip
    assert found.of(PEER)[0].name == "fast"
    assert found.missed == ["two 1.20, asked 1.30"]
    assert Row.from_json(json.loads(json.dumps(found.to_json()))) == found
    shown = table([found])
    assert "**0.50** [0.50, 0.50] fast<br>2.00" in shown
    assert "SDPA: not there" in shown
    assert "25%" in shown  # 1 GFLOP/s of a peak of 4
    (line,) = summaries([found])
    assert "0.50 of the fastest peer" in line
    assert "Missed: " in line


def test_a_row_without_a_result_says_why() -> None:
    failed = Row(separable("conv2d", 7, 8, 8, 8), 1, 8, Tuned(error="no plan"), None, error="no plan")
    assert "**no plan**" in table([failed])
    assert "no result: 7x7_8_8_8" in summaries([failed])[0]
    assert Row.from_json(json.loads(json.dumps(failed.to_json()))) == failed


def test_without_torch_the_column_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    program = request(SMALLEST["attention"]).program()
    arrays = random_inputs(program, np.random.default_rng(0))
    found, missing = torch_peers.contenders(Task(program, arrays, (0,), True))
    assert found == []
    assert "pip install" in missing["PyTorch"]


def test_names_of_large_cases_need_full(capsys: pytest.CaptureFixture[str]) -> None:
    large = next(c.name for c in CASES if not c.small)
    with pytest.raises(SystemExit):
        main(["--list", "--only", large, "nothing"][1:])
    assert "--full" in capsys.readouterr().err
    assert main(["--list", "--full", "--only", large]) == 0
    assert capsys.readouterr().out.strip() == large
