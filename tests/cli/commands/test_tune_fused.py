"""What `tune` says of programs with several stages: the families of plans that were considered."""

from __future__ import annotations

import re

import pytest
from cli.conftest import Cli

SIMULATED = ("-t", "x86-avx512", "-d", "simulator", "--noise", "0")
ATTENTION = ("attention", "-D", "h=2", "-D", "n=128", "-D", "l=128", "-D", "d=32")
TANH = """
def tanh_max(X: f32[64, 96], S: f32[64]):
    M: f32[64]
    for i in range(64):
        M[i] = -inf
        for j in range(96):
            M[i] = max(M[i], X[i, j])
    for i in range(64):
        S[i] = 0
        for j in range(96):
            S[i] += tanh(X[i, j] - M[i])
"""
TWO = """
def two(A: f32[8, 16], B: f32[16, 8], C: f32[8, 16], Y: f32[8, 16]):
    X: f32[8, 8]
    for i, j in grid(8, 8):
        X[i, j] = 0
        for p in range(16):
            X[i, j] += A[i, p] * B[p, j]
    for i, j in grid(8, 16):
        Y[i, j] = 0
        for p in range(8):
            Y[i, j] += X[i, p] * C[p, j]
"""


@pytest.mark.slow
def test_space_and_families_count_the_same_plans(cli: Cli) -> None:
    (cli.folder / "two.py").write_text(TWO)
    here = ("-t", "x86-avx2", "-d", "simulator", "--store", ":memory:")
    done = cli("tune", "two.py", *here, "-i", "x86/vfmadd.f32.*", "-n", 1, "--json")
    found = done.json
    said = re.search(r"^space  (\d+) plans?(, (\d+) of them near the best by the clock)? · ", done.err, re.MULTILINE)
    assert said is not None
    assert int(said[1]) == found["space"]["plans"] == sum(f["plans"] for f in found["families"])
    assert said[3] is None or int(said[3]) < int(said[1])
    names = found["best"]["intrinsic"].split(", ")
    assert len(names) == len(set(names))


@pytest.mark.slow
def test_a_note_says_which_level_opens_a_family(cli: Cli) -> None:
    rounded = ("attention_rounded", "-D", "h=1", "-D", "n=64", "-D", "l=64", "-D", "d=16", "-i", "x86/vfmadd.f32.zmm")
    cli = cli.near()
    done = cli("tune", *rounded, *SIMULATED, "-n", 1)
    note = "--numerics real (equal over the reals, and rounded elsewhere) opens further plans: one pass"
    assert f"note   {note}\n" in done.out
    again = cli("tune", *rounded, *SIMULATED, "-n", 1, "--json").json["families"]
    assert {f["name"]: f["level"] for f in again}["one pass"] == "real"


def test_plans_of_one_family_alone(cli: Cli) -> None:
    (cli.folder / "two.py").write_text(TWO)
    near = cli.near()
    found = near("tune", "two.py", *SIMULATED, "-n", 1, "--plans", "as written", "--json").json
    assert found["best"]["family"] == "as written"
    assert {f["name"] for f in found["families"] if f["plans"]} <= {"as written"}
    assert near("show", "--as", "schedule").status == 0
    wrong = near("tune", "two.py", *SIMULATED, "--plans", "chosen slices", status=1)
    assert "no plan is of a family asked for (chosen slices: " in wrong.err


@pytest.mark.slow
def test_a_line_for_each_family_of_plans(cli: Cli) -> None:
    done = cli("tune", *ATTENTION, *SIMULATED, "-n", 4)
    lines = done.out.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("plans  "))
    last = next(n for n, line in enumerate(lines) if line.startswith("check  "))
    said = [line.removeprefix("plans  ").strip() for line in lines[first:last]]
    assert re.fullmatch(r"(one pass|adapted|as written): the best.*, [1-4] of 4 trials", said[0])
    names = {line.split(":")[0] for line in said}
    assert "one pass" in names
    trials = sum(int(found[1]) for line in said if (found := re.search(r"(\d+) of 4 trials", line)))
    assert trials == 4
    decisions = next(n for n, line in enumerate(lines) if line.startswith("plan  ")) + 1
    assert all(len(re.findall(r"\w=", line)) < 16 for line in lines[decisions:first])
    kept = re.search(r"in cache (.*) and|in cache (.*):", done.out)
    if kept:
        tensors = [part.split()[0] for part in (kept[1] or kept[2]).split(", ")]
        assert len(tensors) == len(set(tensors))
    again = cli("tune", *ATTENTION, *SIMULATED, "-n", 4, "--json").json["families"]
    assert {f["name"] for f in again} == names
    assert sum(f["trials"] for f in again) == 4
    rewrites = cli("show", "--json").json["rewrites"]
    proof = cli("show", "--as", "proof").out
    for found in rewrites:
        assert all(f"{o['name']}: {o['text']}" in proof for o in found["obligations"] if o["by"] == "z3")
    assert proof.count("  saves: ") == len(rewrites)


@pytest.mark.slow
def test_scales_that_leave_a_sum_are_named(cli: Cli) -> None:
    sizes = ("-D", "m=1", "-D", "n=256", "-D", "k=256", "-D", "g=32")
    done = cli("tune", "matmul_int8", *sizes, "-n", 8, "--store", ":memory:")
    assert "plans  deferred: " in done.out or "       deferred: " in done.out
    if "defer]" in done.out.split("plans  ")[0]:
        assert "taken out of the sum Y along p (rescaled, error at most" in done.out


def test_a_family_without_a_plan_says_why(cli: Cli) -> None:
    (cli.folder / "tanh.py").write_text(TANH)
    cli = cli.near()
    done = cli("tune", "tanh.py", *SIMULATED, "-n", 2)
    why = "NOT_SEPARABLE at S: tanh(X[i_2, j_2] - M[i_2]) depends on M and on the data at once"
    assert f"one pass: no plan: {why}" in done.out
    assert "tiles: no plan: stages hand on 256 bytes, which a core's own caches hold" in done.out
    found = cli("tune", "tanh.py", *SIMULATED, "-n", 2, "--json").json["families"]
    assert [f["plans"] for f in found if f["name"] == "one pass"] == [0]


def test_a_run_without_an_answer_prints_an_object_with_its_error(cli: Cli) -> None:
    done = cli("tune", *ATTENTION, *SIMULATED, "--timeout", "0.01s", "--json", status=1)
    assert done.json["best"] is None
    assert "was over before the first trial" in done.json["error"]["message"]
    assert done.json["error"]["hint"].startswith("pass --timeout")
    assert done.json["trials"] == {"done": 0, "failed": {}}
    assert done.err.startswith("error: ")
    assert cli.near()("tune", *ATTENTION, *SIMULATED, "--timeout", "0.01s", status=1).out == ""
