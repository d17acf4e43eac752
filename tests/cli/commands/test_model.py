"""`autosched model eval` and `-d replay:FILE`: what is said of recorded spaces, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.conftest import Cli
from support.paths import ROOT, TESTS

from autosched.store.replay_file import read_replays, write_replays

RECORDED = ROOT / "benchmarks" / "recorded"
FILE = str(TESTS / "data" / "replay_depthwise.json.gz")


def test_models_are_judged(cli: Cli) -> None:
    done = cli.near()("model", "eval", FILE, "--seeds", 2, "--measured", 16)
    tables = done.out.split("\n\n")
    assert len(tables) == 2
    for chosen, table in zip(("random", "auto"), tables, strict=True):
        name, models, *figures = table.splitlines()
        figures, told = figures[:8], figures[8:]
        assert told[0].startswith("xgb - analytic: best@8 ")
        assert name == f"{FILE}: 60 rows; 16 that {chosen} chose to learn from, figures of the other 44"
        assert models.split() == ["analytic", "xgb", "chance"]
        assert [line.split()[0] for line in figures] == [
            "spearman", "kendall", "pairwise", "best@1", "best@8", "recall@16", "in", "measured"
        ]  # fmt: skip
        number = r"-?\d\.\d{3}"
        assert all(re.fullmatch(rf".+?  +{number}.*  +({number}|-)", line) for line in figures), done.out
        assert re.search(rf"{number} \[{number}, {number}\]", figures[0])


def test_the_leak_is_a_column(cli: Cli) -> None:
    asked = ("model", "eval", FILE, "-m", "xgb", "--seeds", 1, "--measured", 16, "--chosen", "random", "--leak")
    heads = cli.near()(*asked).out.splitlines()[1]
    assert re.split(r"  +", heads.strip()) == ["xgb", "xgb, all rows", "chance"]
    (found,) = cli.near()(*asked, "--json").json["models"]
    assert set(found["leak"]) == set(found["chance"])
    assert found["leak"]["recall"] is not None


def test_other_seeds_are_other_rows(cli: Cli) -> None:
    asked = ("model", "eval", FILE, "-m", "xgb", "--seeds", 1, "--measured", 16, "--chosen", "random", "--json")
    first = cli.near()(*asked).json
    other = cli.near()(*asked, "--first-seed", 7).json
    assert (first["seeds"], other["seeds"]) == ([0], [7])
    assert first["models"][0]["spearman"]["mean"] != other["models"][0]["spearman"]["mean"]


@pytest.mark.slow
def test_a_workload_is_held_out(cli: Cli) -> None:
    """What other workloads taught is enough to begin with: no row of the one in question was seen."""
    other = str(RECORDED / "depthwise_f32_56x56x144_s2.json.gz")
    asked = ("model", "eval", FILE, other, "-m", "xgb,analytic", "--held-out", "--measured", 0, "--seeds", 1)
    taught, clock, *_ = cli.near()(*asked, "--json").json["models"]
    assert (taught["measured"], taught["chosen"]) == (0, None)
    assert (len(taught["taught"]), clock["taught"]) == (1, [])
    assert taught["found"] is None
    assert taught["spearman"]["mean"] > 0.3
    alone = cli.near()("model", "eval", FILE, "-m", "analytic", "--measured", 0, "--seeds", 1, "--json").json["models"]
    assert clock == alone[0]


def test_json(cli: Cli) -> None:
    found = cli.near()("model", "eval", FILE, "-m", "analytic", "--measured", 0, "--json").json
    assert found["schema"] == "autosched/model-eval/2"
    (clock,) = found["models"]
    assert (clock["rows"], clock["measured"]) == (60, 0)
    assert clock["spearman"]["low"] < clock["spearman"]["mean"] < clock["spearman"]["high"]
    assert clock["best_1"]["low"] is None  # the clock says the same with every seed
    assert clock["found"] is None  # nothing was measured
    assert clock["chance"]["pairwise"] == 0.5


@pytest.mark.slow
def test_several_spaces_are_put_together(cli: Cli, tmp_path: Path) -> None:
    """Figures over spaces and seeds, and the model's difference from the first one."""
    two = tmp_path / "two.json.gz"
    write_replays(two, read_replays(RECORDED / "h200_rows.json.gz")[:2])
    asked = ("model", "eval", two, "-m", "analytic,random", "--measured", 16, "--seeds", 2, "--chosen", "random")
    text = cli.near()(*asked).out.split("\n\n")[-1]
    assert text.startswith("2 spaces, 2 seeds after 16 rows that random chose\n")
    assert "random - analytic: best@8 -" in text
    assert "the mean difference of best@8 over 2 spaces and 2 seeds" in text
    assert "fewer than 5 spaces" in text
    (together,) = cli.near()(*asked, "--json").json["together"]
    assert (together["spaces"], together["seeds"], together["chosen"]) == (2, 2, "random")
    value, low, high = together["differences"][0]["difference"]
    assert low < value < high
    assert value < 0


@pytest.mark.slow
def test_several_recordings_of_one_file(cli: Cli, tmp_path: Path) -> None:
    """Rows that a GPU measured, fourteen spaces in a file, with today's clock."""
    file = RECORDED / "h200_rows.json.gz"
    two = tmp_path / "two.json.gz"
    write_replays(two, [r for r in read_replays(file) if r.name in ("squares/s8/2048", "llm/e4m3/128x7168x2112")])
    asked = ("model", "eval", two, "-m", "analytic", "--measured", 0, "--seeds", 1, "--today")
    found = cli.near()(*asked, "--json").json["models"]
    assert [m["file"] for m in found] == [f"{two}, llm/e4m3/128x7168x2112", f"{two}, squares/s8/2048"]
    assert all(m["kendall"]["mean"] > 0.6 for m in found)
    one = ("export", file, "--format", "t4", "-o", "out.json")
    assert "holds 14 recordings, and one is wanted" in cli.near()(*one, status=2).err
    done = cli.near()("simulate", two, "-s", "random,ils", "-n", 4, "--repeats", 2)
    assert "2 spaces, 2 seeds" in done.out


WRONG = {
    ("model", "eval", FILE, "-m", "xbg"): "did you mean 'xgb'",
    ("model", "eval", FILE, "-m", ","): "no cost model to judge",
    ("model", "eval", FILE, "--chosen", "rand"): "did you mean 'random'",
    ("model", "eval", FILE, "--chosen", "auto:xbg"): "did you mean 'xgb'",
    ("model", "eval", FILE, "--chosen", ","): "--chosen names no strategy",
    ("model", "eval", FILE, "--measured", -1): "at least 0",
    ("model", "eval", FILE, "--measured", 0): "nothing to learn from",
    ("model", "eval", FILE, "--measured", 60): "leaves no rows of",
    ("model", "eval", FILE, "--measured", 50): "leaves 10 rows of",
    ("model", "eval", FILE, FILE): "is named twice",
    ("model", "eval", FILE, "-m", "analytic,analytic"): "--models names analytic twice",
    ("model", "eval", FILE, "--held-out", "--measured", 16): "there are none",
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
