"""`autosched compare`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import csv
import sys

import pytest
from cli.conftest import Cli

# The simulator checks small kernels in the interpreter, which takes longer than all the rest.
SMALL = ("matmul", "-D", "m=8", "-D", "n=16", "-D", "k=16", "-D", "a=u8", "-D", "b=s8", "-D", "acc=s32")
QUICK = (*SMALL, "-t", "x86-avx512", "-i", "x86/vpdpbusd.ymm", "-s", "random,clock", "-n", 6, "--seeds", 2)


@pytest.mark.slow
def test_the_answer_is_on_stdout_and_progress_is_not(cli: Cli) -> None:
    done = cli("compare", *QUICK, "-v")
    assert "matmul for x86-avx512 on simulator: 2 strategies × 2 seeds × 6 trials" in done.out
    assert "clock - random: regret" in done.out
    assert [line.split(":")[0] for line in done.err.splitlines()] == [
        "1/4 runs; random, seed 0", "2/4 runs; random, seed 1", "3/4 runs; clock, seed 0", "4/4 runs; clock, seed 1"
    ]  # fmt: skip
    assert cli.near()("compare", *QUICK, "-q").err == ""


def test_json(cli: Cli) -> None:
    found = cli.near()("compare", *QUICK, "--json").json
    assert found["schema"] == "autosched/compare/2"
    assert (found["trials"], found["seeds"], found["device"]) == (6, [0, 1], "simulator")
    assert [(r["strategy"], r["seed"], len(r["best_s"])) for r in found["runs"]] == [
        ("random", 0, 6), ("random", 1, 6), ("clock", 0, 6), ("clock", 1, 6)
    ]  # fmt: skip
    assert found["best_s"] == min(min(r["best_s"]) for r in found["runs"])
    for summary in found["strategies"]:
        assert list(summary["best_s"]) == ["4", "6"]
        value, low, high = summary["regret"]
        assert 0 <= value <= 1
        assert low is high is None if summary["strategy"] == "clock" else 0 <= low <= value <= high <= 1
    assert [(d["strategy"], d["baseline"], d["outcome"]) for d in found["differences"]] == [
        ("clock", "random", "regret"), ("clock", "random", "final")
    ]  # fmt: skip


@pytest.mark.slow
def test_the_same_command_gives_the_same_answer(cli: Cli) -> None:
    runs = [cli.near()("compare", *QUICK, "--json").json["runs"] for _ in range(2)]
    assert runs[0] == runs[1]


def test_csv(cli: Cli) -> None:
    cli.near()("compare", *QUICK, "-o", "all.csv", "-q")
    with (cli.folder / "all.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 6
    assert {row["status"] for row in rows} == {"ok"}


@pytest.mark.slow
def test_a_picture(cli: Cli) -> None:
    pytest.importorskip("matplotlib")
    cli.near()("compare", *QUICK, "-o", "curves.svg", "-q")
    assert "<svg" in (cli.folder / "curves.svg").read_text()


def test_a_picture_without_matplotlib(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "autosched[plots]" in cli.near()("compare", *QUICK, "-o", "curves.svg", status=3).err


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-s", "randm"), "did you mean 'random'"),
        (("-s", ","), "no strategy"),
        (("-s", "random,random"), "twice"),
        (("--seeds", "0"), "0 seeds"),
        (("-n", "0"), "trials is 0"),
        (("--threads", "0"), "threads is 0"),
        (("--cost-model", "xgbb"), "did you mean 'xgb'"),
        (("-d", "simulato"), "did you mean 'simulator'"),
        (("-o", "x.gif"), "unknown format"),
        (("-o", "nowhere/x.csv"), "no such folder"),
        (("-i", "x86/nothing"), "x86/nothing"),
    ],
)
def test_bad_input(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    done = cli.near()("compare", *SMALL, *arguments, status=2)
    assert said in done.err
    assert done.out == ""
