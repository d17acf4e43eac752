"""`autosched model eval` and `-d replay:FILE`: what is said of recorded spaces, and what is refused."""

from __future__ import annotations

import re

import pytest
from cli.conftest import Cli
from support.paths import ROOT, TESTS

RECORDED = ROOT / "benchmarks" / "recorded"
FILE = str(TESTS / "data" / "replay_depthwise.json.gz")


def test_models_are_judged(cli: Cli) -> None:
    done = cli.near()("model", "eval", FILE, "--seeds", 2, "--measured", 16)
    name, models, *figures = done.out.splitlines()
    assert name == f"{FILE}: 60 rows"
    assert models.split() == ["analytic", "xgb", "after", "16"]
    assert [line.split()[0] for line in figures] == [
        "spearman", "kendall", "pairwise", "best@1", "best@8", "recall@16", "in", "measured"
    ]  # fmt: skip
    assert all(re.fullmatch(r".+  -?\d\.\d{3} \[-?\d\.\d{3}, \d\.\d{3}\]", line) for line in figures), done.out


@pytest.mark.slow
def test_a_workload_is_held_out(cli: Cli) -> None:
    """What other workloads taught is enough to begin with: no row of the one in question was seen."""
    other = str(RECORDED / "depthwise_f32_56x56x144_s2.json.gz")
    asked = ("model", "eval", FILE, other, "-m", "xgb,analytic", "--held-out", "--measured", 0, "--seeds", 1)
    taught, clock, *_ = cli.near()(*asked, "--json").json["models"]
    assert (taught["measured"], taught["intervals"], clock["intervals"]) == (0, "seeds", "rows")
    assert (len(taught["taught"]), clock["taught"]) == (1, [])
    assert taught["found"] is None
    assert taught["spearman"]["median"] > 0.3
    alone = cli.near()("model", "eval", FILE, "-m", "analytic", "--json").json["models"]
    assert {**clock, "file": ""} == {**alone[0], "file": ""}


def test_json(cli: Cli) -> None:
    found = cli.near()("model", "eval", FILE, "-m", "analytic", "--json").json
    assert found["schema"] == "autosched/model-eval/1"
    (clock,) = found["models"]
    assert (clock["rows"], clock["measured"], clock["seeds"]) == (60, 0, 1)
    assert clock["spearman"]["low"] < clock["spearman"]["median"] < clock["spearman"]["high"]
    assert clock["found"] is None  # nothing was measured


WRONG = {
    ("model", "eval", FILE, "-m", "xbg"): "did you mean 'xgb'",
    ("model", "eval", FILE, "-m", ","): "no cost model to judge",
    ("model", "eval", FILE, "--chosen", "rand"): "did you mean 'random'",
    ("model", "eval", FILE, "--measured", 0): "at least 1",
    ("model", "eval", FILE, "--measured", 60): "leaves no row of",
    ("model", "eval", FILE, "--held-out"): "there are none",
    ("model", "eval", "nowhere.gz"): "cannot read nowhere.gz",
    ("model", "eval", __file__): "not JSON",
    ("tune", "depthwise_conv2d", "-D", "c=8", "-d", f"replay:{FILE}", "-t", "portable"): "is a recording of",
    ("tune", "depthwise_conv2d", "-d", "replay", "-t", "portable"): "replay:FILE",
}


@pytest.mark.parametrize("arguments", WRONG, ids=lambda a: " ".join(map(str, a[:2])) + f" {a[-1]}")
def test_what_cannot_be_judged(cli: Cli, arguments: tuple[object, ...]) -> None:
    assert WRONG[arguments] in cli.near()(*arguments, status=2).err


def test_tuning_says_that_nothing_ran(cli: Cli) -> None:
    asked = (
        "tune",
        "depthwise_conv2d",
        "-D",
        "c=144",
        "-t",
        "portable",
        "-d",
        f"replay:{FILE}",
        "-n",
        12,
        "-s",
        "clock",
    )
    found = cli.near()(*asked, "--store", ":memory:", "--json").json
    assert (found["device"], found["target"], found["space"]["rows"]) == ("replay", "native", 60)
    assert found["verified"] == {"ok": False, "max_abs_error": None, "tolerance": None, "by": "recorded as right"}


@pytest.mark.slow
def test_features_are_ranked(cli: Cli) -> None:
    cli = cli.near()
    out = cli("model", "importance", FILE, "-n", 3).out.splitlines()
    assert out[0].startswith("error  ")
    assert len(out) == 5
    found = cli("model", "importance", FILE, "--json").json
    assert found["schema"] == "autosched/importance/1"
    rises = [f["rise"] for f in found["features"]]
    assert rises == sorted(rises, reverse=True)


@pytest.mark.slow
def test_ranked_features_are_drawn(cli: Cli) -> None:
    pytest.importorskip("matplotlib")
    cli = cli.near()
    assert len(cli("model", "importance", FILE, "-n", 3, "-o", "bars.svg").out.splitlines()) == 5
    assert (cli.folder / "bars.svg").stat().st_size > 1000
    assert "unknown format" in cli("model", "importance", FILE, "-o", "bars.txt", status=2).err


@pytest.mark.slow
def test_a_model_starts_from_earlier_studies(cli: Cli) -> None:
    cli = cli.near()
    flags = ("-D", "k=16", "-D", "n=16", "-t", "amd-zen4", "-d", "simulator", "-q")
    cli("tune", "matmul", "-D", "m=16", *flags, "-n", 6, "--store", "first.db")
    name = cli("studies", "--store", "first.db", "--json").json[0]["study"]
    for where in (name, "first.db", FILE):
        cli("tune", "matmul", "-D", "m=32", *flags, "-n", 2, "--warm-from", where, "--store", "first.db", "--fresh")
    other = ("-t", "intel-skylake-sp", "--warm-from", "first.db")
    said = cli("tune", "matmul", *flags, *other, status=2).err
    assert "no study of intel-skylake-sp" in said
    assert "of another target counts where it is named" in said
    assert "nowhere" in cli("tune", "matmul", *flags, "--warm-from", "nowhere", "--store", "first.db", status=2).err
