"""What `benchmarks.search` keeps and concludes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.paths import ROOT, TESTS

from autosched.search.evaluate.compare import Row
from autosched.search.evaluate.landscape import Landscape
from autosched.store.exchanged import read_any
from benchmarks import search
from benchmarks.common.budgets import budgets_markdown, leads, shared
from benchmarks.common.reached import behind, reached_markdown
from benchmarks.common.roofline import with_roofline
from benchmarks.common.search_table import Score, Space, against, markdown, overall, scored, text, together

CACHE = TESTS / "data" / "kernel_tuner" / "convolution_A4000_cut.json"
LANDSCAPE = Landscape(np.arange(1.0, 101.0))


def rows(best: list[float | None]) -> list[Row]:
    return [Row("s", 0, n, "p", n, "ok", s, s, 0.0) for n, s in enumerate(best, 1)]


def test_a_run_is_scored_at_the_checkpoints() -> None:
    found = scored(rows([5.0] * 15 + [3.0] * 20 + [1.0] * 29), 64, LANDSCAPE)
    assert found.regret == (2.0, 2.0, 0.0)
    random = LANDSCAPE.expected_s(np.arange(1, 65))
    best = np.repeat([5.0, 3.0, 1.0], [15, 20, 29])
    assert found.performance == pytest.approx(np.mean((random - best) / (random - 1)), abs=1e-4)


def test_what_has_not_come_out_right_counts_as_the_slowest() -> None:
    found = scored(rows([None] * 16), 32, LANDSCAPE)
    assert found.regret == (99.0, 99.0)
    assert found.performance < 0


def test_a_run_that_ended_early_keeps_its_best() -> None:
    assert scored(rows([1.0]), 64, LANDSCAPE).regret == (0.0, 0.0, 0.0)


def filled() -> Space:
    space = Space(100, True, 1.0, 64)
    for seed in range(4):
        space.add("good", seed, Score((0.1 * seed, 0.0, 0.0), 0.9))
        space.add("bad", seed, Score((0.5, 0.4, 0.3), 0.1 * seed))
    space.add("good", 4, Score((9.0, 9.0, 9.0), -9.0))
    return space


def test_it_comes_back_from_json_and_tables_take_seeds_that_all_have() -> None:
    space = filled()
    assert Space.of(space.plain()) == space
    assert space.common == [0, 1, 2, 3]
    lines = text("x", space).splitlines()
    assert lines[0] == "x: 100 rows, with a clock, 4 seeds of 64 trials"
    assert lines[2].split()[:4] == ["good", "15.0%", "0.0%", "0.0%"]
    assert overall({"x": space, "y": filled()}).splitlines()[0] == "2 spaces with a clock, 4 seeds"


def test_tables_for_the_documentation() -> None:
    lines = markdown({"x": filled(), "y": filled()}).splitlines()
    assert lines[0] == "| with a clock, 4 seeds | all 2, performance | less `auto`'s | p | x: after 16 / 32 / 64 | y |"
    assert lines[2].startswith("| `good` | 0.900 |  |  | 15 / 0 / 0 | 15 / 0 / 0 |"), "two spaces alike: no interval"
    assert lines[3].startswith("| `bad` |")


@pytest.mark.slow
def test_the_page_has_the_tables_of_what_is_kept() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for table in markdown(search.read(search.RESULTS / "search.json")).split("\n\n"):
        assert table.strip() in page, "python -m benchmarks.search --markdown"
    assert reached_markdown(search.read(search.RESULTS / "search.json")) in page, "the last line but one of --markdown"


@pytest.mark.sampled("search_clock.json", "search_roofline.json")
@pytest.mark.parametrize("name", ["search_public.json", "search_clock.json", "search_roofline.json"])
def test_the_page_has_the_leads_that_are_kept(name: str) -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    kept = search.pages(search.read(search.RESULTS / name))
    assert kept
    for part in kept.split("\n\n"):
        assert part.strip() in page, f"python -m benchmarks.search --markdown --json benchmarks/results/{name}"


@pytest.mark.parametrize("name", ["search.json", "search_public.json", "search_clock.json", "search_roofline.json"])
def test_the_page_says_which_results_are_stale(name: str) -> None:
    """Of the code that decides which rows are tried (not of its words): `--markdown` says the line anew."""
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    said = search.stated(search.RESULTS / name)
    assert said in page, f"python -m benchmarks.search --markdown --json benchmarks/results/{name}"


def test_how_near_the_optimum_is_told_of_spaces_with_a_clock() -> None:
    """By the median over the seeds of `auto`, the furthest behind first; other spaces are not in it."""
    kept = {name: Space(100, name != "unclocked", 1.0, 64) for name in ("near", "far", "further", "unclocked")}
    regrets_of = {"near": (0.0, 0.01, 9.0), "far": (0.02, 0.03, 0.0), "further": (0.5,), "unclocked": (1.0,)}
    for name, regrets in regrets_of.items():
        for seed, regret in enumerate(regrets):
            kept[name].add("auto", seed, Score((9.0, regret, 0.0), 0.5))
            kept[name].add("random", seed, Score((9.0, 9.0, 9.0), 0.5))
    assert behind(kept) == (3, {"further": 0.5, "far": 0.02})
    assert reached_markdown(kept).endswith("in 1 of 3 spaces with a clock; not in `further` (50.0 %), `far` (2.0 %).")
    assert reached_markdown({"unclocked": kept["unclocked"]}) == ""


def test_a_roofline_knows_computing_and_memory_alone() -> None:
    """On rows whose times are as before; what has no clock has none then."""
    recording = read_any(ROOT / "benchmarks" / "recorded" / "complete" / "softmax.json.gz")
    simple = with_roofline(recording)
    for plan, before in zip(simple.plans, recording.plans, strict=True):
        assert set(plan.terms) == {"compute", "memory", "total"}
        assert (plan.terms["total"] == np.maximum(before.terms["compute"], before.terms["memory"])).all()
        assert (plan.time_s == before.time_s).all()
    unclocked = read_any(CACHE)
    assert all(not plan.terms for plan in with_roofline(unclocked).plans)


def test_a_roofline_wants_a_file_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        search.main(["--roofline", "--only-table"])
    assert "a --json of its own" in capsys.readouterr().err


def test_seeds_that_only_some_strategies_have_count_for_these() -> None:
    """Who continues two strategies loses nothing, and sees what the new seeds say alone."""
    kept = {}
    for number in range(5):
        kept[f"k_{number}"] = space = Space(100, False, 1.0, 64)
        for name, seeds, gain in (("auto", 6, 0.5), ("near", 6, 0.4), ("far", 2, 0.1)):
            for seed in range(seeds):
                until = gain - (0.3 if name == "near" and seed > 1 else 0.0) + 0.001 * (seed * number + number)
                space.add(name, seed, Score((0.0, 0.0, 0.0), until, (until, until, until)))
    assert shared(kept, ["auto", "near"]) == list(range(6))
    assert leads(kept, 64)["near"].difference.value == pytest.approx(0.3)
    assert leads(kept, 64, but=[0, 1])["near"].difference.value == pytest.approx(0.4)
    assert leads(kept, 64)["far"].difference.value == pytest.approx(0.4)
    assert set(leads(kept, 64, but=[0, 1])) == {"near"}
    page = budgets_markdown(kept)
    assert "| `near` (6 seeds) | +0.300" in page
    assert "| `far` | +0.400" in page
    assert "The seeds alone that only some have: `near` +0.400" in page


def test_intervals_over_spaces_hold_what_spaces_differ_by() -> None:
    """Of two spaces that agree with themselves and not with each other, seeds say nothing of a third."""
    kept = {}
    for number in range(6):
        kept[f"s{number}"] = space = Space(100, True, 1.0, 64)
        for seed in range(4):
            space.add("auto", seed, Score((0.0, 0.0, 0.0), 0.5 + 0.001 * seed))
            space.add("other", seed, Score((0.0, 0.0, 0.0), 0.4 + 0.05 * number + 0.001 * seed))
    _, _, found = together(kept, True)
    assert found["other"].high - found["other"].low > 0.15
    (d,) = against(kept, True)
    assert d.difference.low < 0 < d.difference.high
    assert d.p is not None
    assert d.p > 0.05
    assert "the family of 1 test against auto" in overall(kept)


def test_other_rows_or_trials_are_another_space() -> None:
    space = filled()
    assert space.like(Space(100, True, 1.0 + 1e-9, 64))
    for rows, optimum_s, trials in ((99, 1.0, 64), (100, 1.1, 64), (100, 1.0, 32)):
        assert not space.like(Space(rows, True, optimum_s, trials))


def test_the_same_command_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "s.json"
    flags = ["--more", str(CACHE), "--spaces", CACHE.stem, "--trials", "16", "--jobs", "1", "--json", str(out)]
    flags += ["--strategies", "random", "ils"]
    assert search.main([*flags, "--seeds", "1"]) == 0
    first = search.read(out)
    capsys.readouterr()
    assert search.main([*flags, "--seeds", "2"]) == 0
    assert "2 of 2 runs" in capsys.readouterr().err, "those of the second seed"
    kept = search.read(out)[CACHE.stem]
    assert kept.common == [0, 1]
    assert kept.runs["ils"][0] == first[CACHE.stem].runs["ils"][0]
    assert search.main([*flags, "--only-table"]) == 0
    assert "2 seeds of 16 trials" in capsys.readouterr().out


@pytest.mark.slow
def test_runs_are_played_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal runs state today's code; one that comes out otherwise is named, and the results are stale."""
    out = tmp_path / "s.json"
    flags = ["--more", str(CACHE), "--trials", "16", "--jobs", "1", "--json", str(out)]
    assert search.main([*flags, "--spaces", CACHE.stem, "--strategies", "random", "ils", "--seeds", "2"]) == 0
    data = json.loads(out.read_text())
    data["made"]["digest"] = "another"
    out.write_text(json.dumps(data))
    assert search.stated(out).startswith("*Stale")
    assert search.main([*flags, "--replay", "1"]) == 0
    assert "of 2 of these runs, drawn at random over all strategies, 2 came out the same" in search.stated(out)
    runs = data["spaces"][CACHE.stem]["runs"]
    runs["ils"] = [[seed, 0.25, *rest] for seed, _, *rest in runs["ils"]]
    out.write_text(json.dumps(data))
    capsys.readouterr()
    assert search.main([*flags, "--replay", "1"]) == 1
    assert "2 runs played again, 1 otherwise; ils on" in capsys.readouterr().out
    assert search.stated(out).startswith("*Stale")


def test_spaces_by_name(tmp_path: Path) -> None:
    here = search.spaces()
    assert {"gemm_f32_512", "h200_bf16_4096x4096x4096", "convolution_A4000"} <= set(here)
    with pytest.raises(SystemExit):
        search.main(["--spaces", "nothing", "--json", str(tmp_path / "x.json")])


def test_shards_merge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--more", str(CACHE), "--spaces", CACHE.stem, "--trials", "16", "--jobs", "1", "--seeds", "1"]
    parts = []
    for seed, strategy in ((0, "random"), (1, "random"), (0, "ils")):
        parts.append(tmp_path / f"{len(parts)}.json")
        flags_of = ["--first", str(seed), "--strategies", strategy, "--json", str(parts[-1])]
        assert search.main([*flags, *flags_of]) == 0
    out = tmp_path / "all.json"
    assert search.main(["--json", str(out), "--merge", *map(str, parts)]) == 0
    runs = search.read(out)[CACHE.stem].runs
    assert {strategy: sorted(seeds) for strategy, seeds in runs.items()} == {"random": [0, 1], "ils": [0]}
    assert search.main(["--json", str(out), "--merge", str(parts[0]), "--forget", "random"]) == 0
    assert sorted(search.read(out)[CACHE.stem].runs["random"]) == [0]


def test_runs_of_another_recording_replace_those_of_the_old_one() -> None:
    old, new = filled(), replace(filled(), rows=99)
    del new.runs["bad"]
    assert search.merged({"x": old}, {"x": new})["x"] == new


def test_no_run_begins_after_the_limit(tmp_path: Path) -> None:
    out = tmp_path / "s.json"
    flags = ["--more", str(CACHE), "--spaces", CACHE.stem, "--trials", "16", "--jobs", "1", "--seeds", "9"]
    assert search.main([*flags, "--strategies", "random", "--json", str(out), "--limit", "0"]) == 0
    assert search.read(out)[CACHE.stem].common == [0]
