"""`autosched simulate` and `export --format`: spaces of others in, studies out in their formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Cli
from support.paths import TESTS

CACHE = TESTS / "data" / "kernel_tuner" / "convolution_A4000_cut.json"


@pytest.mark.slow
def test_one_command_and_no_device(cli: Cli) -> None:
    done = cli("simulate", CACHE, "--strategies", "random,genetic,ils", "--repeats", 8, "-n", 16, "-v")
    assert "convolution_kernel for recorded on NVIDIA RTX A4000: 3 strategies × 8 seeds × 16 trials" in done.out
    assert "performance" in done.out
    assert "over time" in done.out
    assert "genetic - random: performance" in done.out
    assert len(done.err.splitlines()) == 24
    near = cli.near()("simulate", CACHE, "-s", "random,ils", "--repeats", 2, "-n", 4, "--baseline", "ils", "-q")
    assert "random - ils: regret" in near.out
    assert near.err == ""


def test_json(cli: Cli) -> None:
    found = cli.near()("simulate", CACHE, "-s", "random,ils", "--repeats", 3, "-n", 8, "--json").json
    assert found["schema"] == "autosched/compare/2"
    assert found["target"] == "recorded"
    for summary in found["strategies"]:
        value, low, high = summary["performance"]
        assert low <= value <= high <= 1


def test_several_files_are_put_together(cli: Cli, tmp_path: Path) -> None:
    """Intervals over spaces and seeds, beside those of each space."""
    second = tmp_path / "second.json"
    cli.near()("export", CACHE, "--format", "kernel-tuner", "-o", second)
    asked = ("simulate", CACHE, second, "-s", "random,ils", "--repeats", 6, "-n", 8)
    done = cli.near()(*asked)
    each, _, together = done.out.partition("\n2 spaces, 6 seeds\n")
    assert each.count("performance") >= 4
    assert together.startswith("strategy  performance\nrandom")
    assert "ils - random: performance" in together
    assert "fewer than 5 spaces" in together
    assert cli.near()(*asked, "-q").out.startswith("2 spaces, 6 seeds\n")
    found = cli.near()(*asked, "--json").json
    assert found["schema"] == "autosched/compare-spaces/1"
    assert (len(found["spaces"]), found["seeds"], len(found["each"])) == (2, 6, 2)
    assert found["each"][0]["family"].endswith("against random")


def test_what_is_wrong_with_a_later_file_is_said_before_any_run(cli: Cli, tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text(CACHE.read_text()[:3000])
    clocked = TESTS / "data" / "replay_depthwise.json.gz"
    for arguments, said in (((CACHE, cut), "is cut short"), ((clocked, CACHE, "-s", "clock"), "ranks by the clock")):
        done = cli.near()("simulate", *arguments, "--repeats", 2, "-n", 4, status=2)
        assert said in done.err
        assert done.out == ""


def test_logs_and_results_of_other_tuners(cli: Cli) -> None:
    """A log holds several tasks, each a space; what was left out of it is said once."""
    others = TESTS / "data" / "other_tuners"
    done = cli.near()("simulate", others / "autotvm_cut.log", "-s", "random,ils", "--repeats", 2, "-n", 4)
    assert "dense_pack.x86 128x768 768x768 for recorded on llvm" in done.out
    assert "2 spaces, 2 seeds" in done.out
    assert done.err.count("left out the task conv2d_NCHWc.x86") == 1
    assert "batch_matmul.x86 12x128x64 12x128x64: left out 1 measurement" in done.err
    for name in ("ktt_pnpoly_3090_cut.json.gz", "autotvm_0.1.log", "ansor_cut.json", "TRIAD/1.csv"):
        asked = ("simulate", others / name, "-s", "random,genetic", "--repeats", 2, "-n", 4, "--json")
        assert cli.near()(*asked).json["schema"] == "autosched/compare/2"
    cut = cli.folder / "cut.log"
    cut.write_text((others / "autotvm_cut.log").read_text()[:-40])
    assert "is cut short: line 18" in cli.near()("simulate", cut, status=2).err
    table = cli.folder / "out.csv"
    assert "no common table" in cli.near()("simulate", others / "autotvm_cut.log", "-o", table, status=2).err
    judged = ("model", "eval", others / "TRIAD/1.csv", "--measured", 8, "--seeds", 1, "--chosen", "random", "-m", "xgb")
    assert "xgb" in cli.near()(*judged).out


def test_seeds_of_ones_own(cli: Cli) -> None:
    found = cli.near()("simulate", CACHE, "-s", "random", "-n", 4, "--repeats", 2, "--first-seed", 40, "--json").json
    assert found["seeds"] == [40, 41]
    assert [run["seed"] for run in found["runs"]] == [40, 41]


def test_budgets_are_stated(cli: Cli, tmp_path: Path) -> None:
    asked = ("simulate", CACHE, "-s", "random,ils", "--repeats", 3, "-n", 12)
    out = cli.near()(*asked, "--budgets", "12,6").out
    assert "best of 6" in out
    assert "strategy  to 6" in out
    found = cli.near()(*asked, "--budgets", "6,12", "--json").json
    assert [list(s["areas"]) for s in found["strategies"]] == [["6", "12"]] * 2
    for budgets, said in (("6,x", "must be numbers of trials"), ("0", "must be numbers of"), ("13", "have 12 trials")):
        assert said in cli.near()(*asked, "--budgets", budgets, status=2).err


def test_files_are_the_same_every_time(cli: Cli, tmp_path: Path) -> None:
    """Whoever computes a checksum of results gets the same one, in several processes, too."""
    asked = ("simulate", CACHE, "-s", "random,ils", "--repeats", 3, "-n", 12, "-q")
    for name, more in (("a.csv", ()), ("b.csv", ("--jobs", 2)), ("c.csv", ("--thinking",))):
        cli.near()(*asked, *more, "-o", tmp_path / name)
    first, second, thought = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert first == second != thought
    checksums = {cli.near()(*asked, *more, "--json").json["checksum"] for more in ((), ("--thinking",))}
    assert len(checksums) == 1


def test_a_budget_above_the_space_is_said(cli: Cli) -> None:
    done = cli.near()("simulate", CACHE, "-s", "random", "-n", 10_000, "--repeats", 1)
    assert "so runs are no longer than that" in done.err
    assert "one seed has no intervals, and nothing is tested" in done.out
    assert "optimum of " in done.out


def test_budgets_of_files_of_different_lengths(cli: Cli, tmp_path: Path) -> None:
    """A small file refuses no budget that the other has; one that none has is refused with what can be had."""
    small, page = tmp_path / "small.json", tmp_path / "page.html"
    data = json.loads(CACHE.read_text())
    rows = len(data["cache"])
    data["cache"] = dict(list(data["cache"].items())[:20])
    small.write_text(json.dumps(data))
    asked = ("-s", "random", "--repeats", 2, "-n", 24)
    done = cli.near()("simulate", CACHE, small, *asked, "--budgets", "6,24")
    assert "its runs have 20 trials, so --budgets 24 is of other files alone" in done.err
    assert "best of 24" in done.out
    assert "up to 24: one space has so many trials, see its table" in done.out
    refused = cli.near()("simulate", CACHE, small, *asked, "--budgets", "25", status=2).err
    assert f"state budgets of 1 to 24, or give more --trials (up to {rows})" in refused
    refused = cli.near()("simulate", small, *asked, "--budgets", "25", status=2).err
    assert "have 20 trials: it has 20 rows, and a run tries each once\nhelp: state budgets of 1 to 20\n" in refused
    assert f"wrote {page}" in cli.near()("simulate", small, *asked, "-o", page).err
    assert not cli.near()("simulate", small, *asked, "-q", "-o", page).err


def test_bad_input(cli: Cli, tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text(CACHE.read_text()[:3000])
    near = cli.near()
    for arguments, said in (
        ((cut,), "cut.json is cut short"),
        ((tmp_path / "gone.json",), "cannot read"),
        ((CACHE, "-s", "clock"), "ranks by the clock"),
        ((CACHE, "-s", "genetics"), "did you mean 'genetic'"),
        ((CACHE, "-n", 0), "leaves nothing to compare"),
        ((CACHE, "--repeats", 0), "leave nothing to compare"),
        ((CACHE, "-s", "random", "--baseline", "ils", "--repeats", 1, "-n", 2), "--baseline ils takes no part"),
        ((CACHE, "-o", "x.txt"), "unknown format"),
        ((CACHE, "--jobs", 0), "must be at least 1"),
        ((CACHE, CACHE), "is named twice"),
        ((CACHE, cut, "-o", "x.html"), "several files have no common table"),
    ):
        done = near("simulate", *arguments, status=2)
        assert said in done.err
        assert done.out == ""


@pytest.mark.slow
def test_reports(cli: Cli, tuned: Cli, tmp_path: Path) -> None:
    page = tmp_path / "c.html"
    cli.near()("simulate", CACHE, "-s", "random,ils", "--repeats", 2, "-n", 4, "-o", page, "-q")
    assert "Performance over trials" in page.read_text()
    near = tuned.near()
    (name,) = [study["study"] for study in near("studies", "--json").json]
    assert near("report", name[:6], "-o", tmp_path / "s.html").out.strip() == str(tmp_path / "s.html")
    assert "The best trials" in (tmp_path / "s.html").read_text()
    assert "use a name that ends in .html" in near("report", name, "-o", "s.pdf", status=2).err


def test_a_study_in_other_formats(tuned: Cli, tmp_path: Path) -> None:
    near = tuned.near()
    (name,) = [study["study"] for study in near("studies", "--json").json]
    for kind, file in (("t4", "a.json.gz"), ("kernel-tuner", "b.json")):
        near("export", name, "--format", kind, "-o", tmp_path / file)
        found = near("simulate", tmp_path / file, "-s", "random", "-n", 4, "--repeats", 2, "--json").json
        assert found["program"] == "matmul"
    assert "unknown format 't5'" in near("export", name, "--format", "t5", "-o", "x.json", status=2).err
    assert "writes all trials as JSON" in near("export", name, "--format", "t4", "-o", "x.c", status=2).err


def test_a_recorded_space_in_other_formats(cli: Cli, tmp_path: Path) -> None:
    """What was imported goes out again, and strategies search it as before."""
    near = cli.near()
    runs = ("-s", "random", "-n", 6, "--repeats", 2, "--json")
    before = near("simulate", CACHE, *runs).json["runs"]
    for kind in ("t4", "kernel-tuner"):
        out = tmp_path / f"{kind}.json"
        assert near("export", CACHE, "--format", kind, "-o", out).out.strip() == str(out)
        after = near("simulate", out, *runs).json["runs"]
        assert [len(r["best_s"]) for r in after] == [len(r["best_s"]) for r in before]
        assert min(min(filter(None, r["best_s"])) for r in after) < 1e-2, "seconds stay seconds"
    near("export", tmp_path / "gone.json", "--format", "t4", "-o", tmp_path / "x.json", status=2)  # nor a study
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert "broken.json" in near("export", broken, "--format", "t4", "-o", tmp_path / "x.json", status=2).err
