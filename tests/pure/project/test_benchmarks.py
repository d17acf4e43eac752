"""What the benchmarks count and conclude, without a clock."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autosched
from autosched import api
from benchmarks import cpu, metaschedule
from benchmarks.common.contest import Against, Outcome
from benchmarks.common.kept import rows_of, series_table
from benchmarks.common.pages import huge_share
from benchmarks.common.peak import fastest_types
from benchmarks.common.suite import CASES, Case, quick
from benchmarks.common.tables import Row, geometric_mean, summaries, table
from benchmarks.common.tuning import Request, Tuned
from benchmarks.common.work import work_of
from benchmarks.peers.task import Contender


def test_the_suite_is_what_was_asked_for() -> None:
    names = [c.name for c in CASES]
    assert len(set(names)) == len(names)
    series = Counter((c.group, c.series) for c in CASES)
    assert {s: series["gemm", s] for s in ("f32", "bf16", "u8s8", "s8s8")} == dict.fromkeys(
        ("f32", "bf16", "u8s8", "s8s8"), 7
    )
    assert {series["conv", f"{t}/{layout}"] for t in ("f32", "int8") for layout in ("nhwc", "nchw")} == {11}
    assert series["skinny", "f32"] == 7
    chosen = quick(CASES)
    assert {(c.group, c.series) for c in chosen} == set(series)
    assert max(Counter((c.group, c.series) for c in chosen).values()) == 2


@pytest.mark.parametrize("case", quick(CASES), ids=lambda c: c.name)
def test_every_series_has_programs(case: Case) -> None:
    request = Request(case.workload, case.sizes, "nowhere", packed=False)
    program = request.program()
    assert not any(t.const for t in program.tensors.values())
    work = work_of(program)
    assert work.operations > 0
    assert work.bytes_in > 0
    assert work.bytes_out > 0


def test_work_counts_valid_elements_only() -> None:
    assert work_of(autosched.workload("matmul", m=4, n=5, k=6)).operations == 2 * 4 * 5 * 6
    assert work_of(autosched.workload("matmul", m=4, n=5, k=6)).bytes_in == 4 * (4 * 6 + 6 * 5)
    sizes = {"h": 5, "w": 4, "ci": 3, "co": 2, "stride": 2, "dilation": 2, "pad": 1}
    conv = autosched.workload("conv2d", **sizes)
    ho, wo = 2, 1
    valid = sum(
        0 <= 2 * y + 2 * r - 1 < 5 and 0 <= 2 * x + 2 * s - 1 < 4
        for y, x, r, s in product(range(ho), range(wo), range(3), range(3))
    )
    assert work_of(conv).operations == pytest.approx(2 * valid * 3 * 2)
    back = autosched.workload("conv2d_transposed", h=3, w=3, ci=1, co=1, kh=4, kw=4, stride=2, pad=1)
    taps = 3 * 4 - 2  # of a row: three inputs of four taps each, but for the first and the last, which leave the result
    assert work_of(back).operations == pytest.approx(2 * taps**2)


def outcome(*ratios: tuple[str, float, str], share: float = 0.5) -> Outcome:
    against = [Against(f"{family} call", family, (1.0, 1.0, 1.0), (r, r, r), why) for family, r, why in ratios]
    return Outcome((1.0, 1.0, 1.0), against, share * 1e9, 10, 1e9, "fma", 0.25, "a CPU")


def row(label: str, found: Outcome | None, group: str = "gemm", **more: Any) -> Row:
    case = Case(group, "f32", label, "matmul", {"m": 8})
    return Row(case, 1, True, Tuned("s", 1.0, trials=3, history=[(1, 0.5, 2.0)]), found, **more)


def test_bad_anchors_are_shown_but_do_not_count() -> None:
    found = row("a", outcome(("oneDNN", 1.2, ""), ("PyTorch", 0.5, "reference code"), ("OpenBLAS", 1.1, "")))
    assert found.best is not None
    assert found.onednn is not None
    assert (found.best.ratio[1], found.onednn.ratio[1]) == (1.1, 1.2)
    assert "0.50 PyTorch call (reference code)" in table([found])


def test_summaries_say_what_was_missed() -> None:
    rows = [row("a", outcome(("oneDNN", 1.21, ""))), row("b", outcome(("oneDNN", 1.0, ""), ("OpenBLAS", 0.9, "")))]
    (summary,) = summaries(rows)
    assert summary.of_onednn == pytest.approx(1.1)
    assert summary.of_best == pytest.approx((1.21 * 0.9) ** 0.5)
    assert summary.missed == ["least 0.900, asked 0.93"]
    (summary,) = summaries([rows[0], row("c", None, error="no schedule")])
    assert summary.missed == ["1 without a result"]
    assert "**no schedule**" in table([row("c", None, error="no schedule")])
    (summary,) = summaries([rows[0]])
    assert (summary.verdict, summary.missed) == ("as asked", [])
    (summary,) = summaries([replace(rows[1], packed=False)])
    assert summary.verdict == "nothing asked"
    (summary,) = summaries([row("a", outcome(share=0.5), group="rows"), row("b", outcome(share=0.95), group="rows")])
    assert summary.missed == ["a at 50% of peak, asked 90%"]
    assert geometric_mean([]) is None


def test_wrong_numbers_are_told_beside_the_speed() -> None:
    found = row("a", replace(outcome(), wrong={"ORT MatMul": "differs"}), error="2 candidates computed wrong numbers")
    assert "2 candidates computed wrong numbers" in found.line()
    assert "ORT MatMul: differs<br>**2 candidates computed wrong numbers**" in table([found])


def test_what_data_are_drawn_within_is_told_and_what_wider_data_cost() -> None:
    checked = row("a", replace(outcome(), within="-64 <= B <= 64", outside_s=(1.9, 2.0, 2.1)))
    assert "data of all within -64 <= B <= 64; wider data: 0.50 of this speed" in table([checked])
    assert Row.from_json(json.loads(json.dumps(checked.to_json()))) == checked


def test_the_nearer_limit_is_the_one_that_counts() -> None:
    assert outcome(share=0.5).share == (0.5, "peak")
    assert outcome(share=0.1).share == (0.25, "bandwidth")


def test_bandwidth_is_held_against_the_loop_that_runs_in_turn() -> None:
    found = replace(outcome(share=0.1), loop_s=(0.8, 0.9, 1.0), of_loop=(0.88, 0.92, 0.95))
    assert (found.share, found.held) == ((0.25, "bandwidth"), (0.92, "bandwidth"))
    assert "25% bandwidth, 92% [88%, 95%] in turn" in table([row("a", found)])
    (summary,) = summaries([row("a", found, group="rows"), row("b", outcome(share=0.1), group="rows")])
    assert summary.missed == ["b at 25% of bandwidth, asked 90%"]  # of before: only the best pass is known
    assert replace(found, operations=5e8).held == (0.5, "peak")


def test_huge_pages_are_those_of_the_mapping() -> None:
    array = np.zeros(64, np.uint8)
    at = (array.ctypes.data + 32) & ~0xFFF
    maps = [(at - 0x2000, at - 0x1000, 4, 4), (at, at + 0x1000, 8, 6), (at + 0x1000, at + 0x2000, 4, 0)]
    lines = [f"{a:x}-{b:x} rw-p 00000000 00:00 0 \nRss: {r} kB\nAnonHugePages: {h} kB" for a, b, r, h in maps]
    assert huge_share(array, "\n".join(lines)) == 0.75
    assert huge_share(array, lines[0]) is None


def test_the_peak_of_bf16_is_of_the_next_type_where_no_instruction_takes_it() -> None:
    program = autosched.workload("matmul", m=4, n=4, k=4, t="bf16")
    for features, wanted in (({"fma", "avx2"}, "vfmadd.f32.ymm"), ({"fma", "avx512f", "avx512_bf16"}, "vdpbf16ps.zmm")):
        known = api.catalogue().of_isa("x86", features=frozenset(features))
        assert [i.name for i in fastest_types(program, known)] == [f"x86/{wanted}"]


def test_rows_come_back_from_json() -> None:
    timed = replace(outcome(), loop_s=(0.8, 0.9, 1.0), of_loop=(0.8, 0.9, 1.0), huge=(0.5, None))
    for found in (row("a", outcome(("oneDNN", 1.2, ""))), row("b", None, error="it broke"), row("c", timed)):
        assert Row.from_json(json.loads(json.dumps(found.to_json()))) == found
    old = row("a", outcome()).to_json()
    old["outcome"] = {k: v for k, v in old["outcome"].items() if k not in ("loop_s", "of_loop", "huge")}
    assert Row.from_json(json.loads(json.dumps(old))) == row("a", outcome())


def test_when_a_share_of_the_final_speed_was_reached() -> None:
    tuned = Tuned("s", history=[(1, 0.1, 4.0), (2, 0.2, 1.04), (3, 0.3, 1.0)])
    assert tuned.reached(0.95) == (2, 0.2)
    assert tuned.reached(1.0) == (3, 0.3)
    assert Tuned().reached(0.95) is None


@pytest.mark.parametrize(
    ("got", "says"),
    [([1.0, 2.0], ""), ([1.0, 2.1], "differs by 0.1"), ([1.0, np.nan], "not finite"), ([1.0], "shape")],
)
def test_peers_are_compared_with_ours(got: list[float], says: str) -> None:
    contender = Contender("x", "X", lambda: None, lambda: np.array(got), tolerance=1e-3)
    found = contender.difference(np.array([1.0, 2.0]))
    assert found.startswith(says)
    assert bool(found) == bool(says)


def test_integers_agree_exactly_or_within_one_rounding() -> None:
    ours = np.array([1, 2], np.int32)
    assert Contender("x", "X", lambda: None, lambda: np.array([1, 3], np.int32), tolerance=0.0).difference(ours)
    assert not Contender("x", "X", lambda: None, lambda: np.array([1, 3], np.int32), tolerance=1.0).difference(ours)


def test_seeds_of_the_other_tuner_are_summed_up() -> None:
    def seed(number: int, ours: float, tvm: float) -> dict[str, Any]:
        return {"case": "f32_512", "trials": 64, "seed": number, "ratio": (1.0, tvm / ours, 1.0),
                "ours_seconds": (ours,) * 3, "ours": {"wall_s": 5.0},
                "tvm": {"seconds": (tvm,) * 3, "wall_s": 100.0}}  # fmt: skip

    failed = {"case": "f32_512", "trials": 64, "seed": 2, "tvm": {"error": "no candidate survived"}, "ours": {}}
    (found,) = metaschedule.summaries({"a": seed(0, 1.0, 1.1), "b": seed(1, 1.02, 1.5), "c": failed})
    assert (found["seeds"], found["failed"], found["tuning_ratio"]) == (2, 1, 0.05)
    assert found["apart"] == pytest.approx(0.02 / 1.01)
    assert found["apart_tvm"] == pytest.approx(0.4 / 1.3)


def test_names_are_listed_and_unknown_ones_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cpu.main(["--only", "rows/*", "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "rows/softmax/1536x128"
    with pytest.raises(SystemExit):
        cpu.main(["--only", "nothing"])


def test_results_are_kept_without_what_no_table_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(name: str, *rows: Row, **about: Any) -> Path:
        data = {"machine": {"cpu": "a CPU"}, "versions": {}, "trials": 64, "rounds": 25} | about
        path = tmp_path / name
        path.write_text(json.dumps(data | {"rows": [r.to_json() for r in rows]}))
        return path

    looped = replace(outcome(("oneDNN", 1.44, ""), share=0.1), loop_s=(1.0, 1.0, 1.0), of_loop=(0.9, 0.9123456, 1.0))
    first = row("a", replace(outcome(("oneDNN", 1.0, "")), seconds=(1.0, 1.23456789, 2.0)))
    path = tmp_path / "kept.json"
    for name, code, rows in (("one", "r1", [first, row("b", looped)]), ("two", "r2", [row("c", None, error="broke")])):
        assert cpu.main(["--merge", str(run(name, *rows)), "--code", code, "--kept", str(path)]) == 0
    assert "| gemm f32 | 2 | 1.200 | 1.000 (a) | 25% to 40% | 91% |" in capsys.readouterr().out
    data = json.loads(path.read_text())
    assert [(r["case"]["label"], r["code"]) for r in data["rows"]] == [("a", "r1"), ("b", "r1")]
    assert data["rows"][0]["outcome"]["seconds"] == [1.0, 1.2346, 2.0]
    assert "history" not in data["rows"][0]["tuned"]
    assert rows_of(data)[1].outcome == replace(looped, of_loop=(0.9, 0.91235, 1.0))
    alone = Row(Case("gemm", "bf16", "a", "matmul", {"m": 8}), 1, True, Tuned("s", 1.0), outcome())
    assert "| gemm bf16 | 1 | no peer | – | 50% | – |" in series_table([alone])
    again = run("three", row("a", outcome(("oneDNN", 2.0, ""))))
    assert cpu.main(["--merge", str(again), "--code", "r3", "--kept", str(path)]) == 0
    assert "Rows by revision: r3 1, r1 1" in capsys.readouterr().out
    fewer = run("five", row("d", outcome()), rounds=15)
    assert cpu.main(["--merge", str(fewer), "--code", "r3", "--kept", str(path)]) == 0
    assert "Rows by revision: r3 2, r1 1; 1 of 15 rounds, not 25" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="other trials"):
        cpu.main(["--merge", str(run("four", first, trials=8)), "--kept", str(path)])
