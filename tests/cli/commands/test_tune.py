"""Tuning, continuing, and what `tune` prints."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest
from cli.conftest import NAME, SMALL, Cli

import autosched
from autosched.cli.stored import picked
from autosched.report.html import study_html
from autosched.store.records import Measurement, StudyRecord, Trial

KEYS = {"schema", "study", "program", "target", "device", "seed", "strategy", "space", "trials", "best", "baseline",
        "verified", "seconds"}  # fmt: skip


@pytest.mark.slow
def test_a_study_is_continued_to_its_total(cli: Cli) -> None:
    first = cli("tune", *SMALL, "-n", 3, "--json").json
    assert first["trials"]["done"] == 3
    again = cli("tune", *SMALL, "-n", 5, "--json")
    assert again.json["trials"]["done"] == 5
    assert "continuing: 3 of 5 trials done" in again.err
    assert again.json["study"] == first["study"]
    assert first["study"].startswith(NAME)
    numbers = [t["number"] for t in cli.near()("trials", NAME, "--json").json if t["round"] == "search"]
    assert numbers == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_finished_study_measures_nothing_again(tuned: Cli) -> None:
    tuned = tuned.near()
    before = tuned("trials", NAME, "--json").json
    again = tuned("tune", *SMALL, "-n", 4, "--json")
    assert again.json["trials"]["done"] == 8
    assert "(8 trials are there already, 4 asked, best " in again.err
    assert "nothing to search; -n 16 measures more" in again.err
    assert tuned("trials", NAME, "--json").json == before


@pytest.mark.slow
def test_quiet_is_one_line_as_help_and_docs_say(cli: Cli) -> None:
    done = cli.near()("tune", *SMALL, "-n", 2, "-q")
    (line,) = done.out.splitlines()
    assert line.startswith("best   trial ")
    assert done.err == ""
    assert "Print one line" in cli.near()("tune", "--help").out


@pytest.mark.slow
def test_fresh_starts_over(cli: Cli) -> None:
    cli = cli.near()
    cli("tune", *SMALL, "-n", 4, "-q")
    assert cli("tune", *SMALL, "-n", 2, "--fresh", "--json").json["trials"]["done"] == 2


@pytest.mark.slow
def test_a_study_keeps_its_first_seed(cli: Cli) -> None:
    cli = cli.near()
    cli("tune", *SMALL, "-n", 1, "--seed", 7, "-q")
    assert cli("tune", *SMALL, "-n", 2, "--seed", 8, "--json").json["seed"] == 7


@pytest.mark.slow
def test_one_seed_proposes_the_same_candidates(cli: Cli) -> None:
    cli = cli.near()
    flags = ("-n", 4, "-s", "random", "--seed", 3, "-q")
    cli("tune", *SMALL, *flags, "--store", "one.db")
    cli("tune", *SMALL, *flags, "--store", "two.db")
    rows = [[t["schedule"] for t in cli("trials", NAME, "--store", s, "--json").json if t["round"] == "search"]
            for s in ("one.db", "two.db")]  # fmt: skip
    assert rows[0] == rows[1]


@pytest.mark.slow
def test_the_json_object_has_the_contract_s_keys(tuned: Cli) -> None:
    tuned = tuned.near()
    found = tuned("tune", *SMALL, "-n", 8, "--json").json
    assert set(found) - {"families"} == KEYS, "families: where plans are of several"
    assert found["schema"] == "autosched/tune/1"
    assert set(found["space"]) == {"plans", "rows", "rejected"}
    assert set(found["trials"]) == {"done", "failed"}
    best = found["best"]
    conditional = {"conditions", "otherwise"} & set(best)  # where the instruction asks something of data
    assert set(best) - conditional == {"trial", "time_s", "spread", "operations", "gflops", "schedule", "intrinsic",
                                       "kernel_sha", "plan", "family", "rewrites", "workspace_bytes", "launches",
                                       "lower_bound_s", "gap"}  # fmt: skip
    assert best["family"] in ("as written", "adapted")
    assert best["rewrites"] == []
    assert best["gap"] == best["time_s"] / best["lower_bound_s"] - 1
    assert best["operations"] == 2 * 48 * 32 * 64
    assert best["gflops"] == best["operations"] / best["time_s"] / 1e9
    assert set(found["seconds"]) == {"total", "match", "search", "build", "measure", "model"}
    assert found["verified"]["ok"] is True
    assert found["verified"]["max_abs_error"] == 0
    assert found["program"] == str(autosched.workload("matmul", m=48, n=32, k=64, a="u8", b="s8", acc="s32"))


@pytest.mark.slow
def test_answers_on_standard_output_and_talk_on_standard_error(cli: Cli) -> None:
    loud = cli("tune", *SMALL, "-n", 2)
    assert loud.out.startswith("best   trial ")
    assert "\x1b" not in loud.out + loud.err
    for word in ("match  ", "space  ", "study  "):
        assert word in loud.err
    cli = cli.near()
    quiet = cli("tune", *SMALL, "-n", 2, "-q")
    assert quiet.err == ""
    assert len(quiet.out.splitlines()) == 1
    verbose = cli("tune", *SMALL, "-n", 2, "-v", "--fresh")
    assert verbose.err.count("\ntrial ") == 2


def test_the_next_commands_run_as_they_are_printed(cli: Cli) -> None:
    cli = cli.near()
    said = cli("tune", *SMALL, "-n", 1, "--store", "my studies.db").out
    for what in ("see it", "use it"):
        command = next(line for line in said.splitlines() if line.startswith(what))
        _, *arguments = shlex.split(command.removeprefix(what))
        cli(*arguments)
    assert "--store" not in cli("tune", *SMALL, "-n", 1).out


@pytest.mark.slow
def test_nothing_is_kept_in_memory(cli: Cli) -> None:
    cli = cli.near()
    cli("tune", *SMALL, "-n", 1, "-q", "--store", ":memory:")
    assert not list(cli.folder.iterdir())


@pytest.mark.slow
def test_programs_from_a_file_and_from_an_einsum(cli: Cli) -> None:
    cli = cli.near()
    text = "def scale(A: f32[m], B: f32[m], *, m=64):\n    for i in range(m):\n        B[i] = A[i] * 3.0\n"
    (cli.folder / "two.py").write_text(text + text.replace("scale", "other"))
    assert cli("tune", "two.py:other", "-n", 1, "--json").json["study"].startswith("other-m64")
    found = cli("tune", "mk,kn->mn", "-D", "m=32", "-D", "n=32", "-D", "k=32", "-n", 1, "--json").json
    assert found["best"]["time_s"] > 0


@pytest.mark.slow
def test_tuning_needs_no_compiler(cli: Cli) -> None:
    """The PATH is empty, so nothing but the JIT can build the kernels."""
    (cli.folder / "empty").mkdir()
    found = cli("tune", *SMALL, "-n", 2, "--json", PATH=str(cli.folder / "empty"), CC="/nowhere/cc").json
    assert found["trials"] == {"done": 2, "failed": {}}


def test_simulated_times_are_called_so(cli: Cli) -> None:
    sizes = [word for name in "mnk" for word in ("-D", f"{name}=32")]
    tuned = cli.near()("tune", "matmul", *sizes, "-D", "a=s8", "-D", "b=s8", "-t", "gemmini", "-n", 2)
    assert "as simulated: nothing ran on a machine of gemmini" in tuned.out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matmul_int4", "matmul_fp4", "matmul_fp4_packed"])
def test_weights_of_four_bits_stay_narrow(cli: Cli, name: str) -> None:
    cli = cli.near()
    sizes = [word for size in ("m=1", "n=1024", "k=1024") for word in ("-D", size)]  # 4 MB of f32 are no core's own
    assert " in the load" in cli("tune", name, *sizes, "-n", 1).out, "the first trial is the clock's choice"
    shown = cli("show", name, "--json").json["loops"]
    assert re.search(r"W_panel +u(8|32)\[.*packed of W", shown)
    assert "W_factor" not in shown


@pytest.mark.slow
def test_the_simulator_is_a_laptop_s_gpu(cli: Cli) -> None:
    found = cli.near()("tune", "matmul", "-D", "m=64", "-D", "n=64", "-D", "k=64", "-D", "a=f16", "-D", "b=f16",
                "-t", "nvidia-h200", "-d", "simulator", "-n", 4, "--json").json  # fmt: skip
    assert found["target"] == "nvidia-h200"
    assert found["best"]["intrinsic"].startswith("cuda/")
    assert found["verified"]["by"]
    shown = cli.near()("show", "matmul", "--json").json
    assert shown["c"] is None, "a GPU's kernel is not C"
    assert "warp" in shown["loops"]
    assert cli.near()("show", "matmul").out.startswith(found["study"])
    refused = cli.near()("export", "matmul", "-o", "gpu.c", status=2).err
    assert "nvidia-h200 is a GPU, whose kernels are no code for a CPU" in refused


@pytest.mark.slow
def test_the_kernel_of_a_study_computes(cli: Cli) -> None:
    """The Python interface continues what the command began, in one store."""
    cli.near()("tune", *SMALL, "-n", 2, "-q")
    program = autosched.workload("matmul", m=48, n=32, k=64, a="u8", b="s8", acc="s32")
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (48, 64), dtype=np.uint8)
    b = rng.integers(-128, 128, (64, 32), dtype=np.int8)
    study = autosched.tune(program, trials=3, store=cli.folder / "studies.db")
    assert len(study.searched) == 3
    assert np.array_equal(study.best.build()(a, b), a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.slow
def test_goals_end_a_search_before_its_budget(cli: Cli) -> None:
    cli = cli.near()
    found = cli("tune", *SMALL, "-n", 6, "--until", "1s", "--json").json
    assert found["trials"] == {"done": 1, "failed": {}, "ended": "reached"}
    text = cli("tune", *SMALL, "-n", 6, "--until", "1s", "--fresh").out
    assert "the space's lower bound by the target's figures" in text
    assert "the --until goal was reached after 1 trials" in text
    assert "--until soon: neither a time nor a speed" in cli("tune", *SMALL, "--until", "soon", status=2).err


@pytest.mark.slow
def test_the_answer_speaks_of_the_objective(cli: Cli) -> None:
    cli = cli.near()
    sizes = [x for s in ("m=64", "n=64", "k=64", "a=s8", "b=s8", "acc=s32") for x in ("-D", s)]
    asked = ("tune", "matmul", *sizes, "-t", "gemmini", "-d", "simulator", "-n", 4, "--objective", "edp")
    ran = cli(*asked)
    assert " J·s" in ran.out.splitlines()[0]
    assert " J·s" in next(line for line in ran.err.splitlines() if line.startswith("trial "))
    best = cli(*asked, "--json").json["best"]
    assert best["objective"] == "edp"
    assert best["energy_j"]["total"] > best["energy_j"]["DRAM"] > 0
    assert best["cost"] > 0
    assert "lower_bound_s" not in best
    head, *_, clock = cli("show", "matmul", "--as", "schedule").out.splitlines()
    assert f"trial {best['trial']} " in head
    assert head.endswith("J·s")
    assert clock.startswith("clock ")
    assert ", bound by " in clock
    listed = cli("trials", "matmul").out.splitlines()
    assert listed[0].split()[:6] == ["trial", "round", "status", "time", "edp", "clock"]
    assert all(line.count("J·s") == 2 for line in listed[1:])


def test_the_best_is_by_what_the_study_minimises() -> None:
    """The fastest trial spent the most: a study for energy shows and exports the other one."""
    record = StudyRecord("s", {}, "", "", "t", "simulator", 0, {"objective": "energy"})
    fast = Trial(1, "p", 0, {}, Measurement("ok", 1e-6, (1e-6,), extra={"cost": 3.0}))
    slow = Trial(2, "p", 1, {}, Measurement("ok", 2e-6, (2e-6,), extra={"cost": 1.0}))
    assert picked(record, [fast, slow], None) is slow
    assert "trial 2: 2.00 µs, 1.00 J" in study_html(record, [fast, slow])
    assert picked(record, [fast, slow], 1) is fast
