"""Several programs and one budget."""

from __future__ import annotations

from typing import Any

import pytest
from cli.conftest import Cli

import autosched
from autosched.errors import UsageError
from autosched.search.tuning.many import TunedAll

SMALL = autosched.workload("matmul", m=16, n=16, k=16)
LARGE = autosched.workload("matmul", m=48, n=64, k=32)


@pytest.fixture(scope="module")
def tuned() -> TunedAll:
    return autosched.tune_all([SMALL, LARGE], [1, 50], "amd-zen4", trials=24, device="simulator", strategy="clock")


@pytest.mark.slow
def test_the_next_trials_go_where_they_save_most(tuned: TunedAll) -> None:
    assert [p.trials for p in tuned.parts] == [8, 16]
    assert (tuned.reason, tuned.exit_code) == ("trials", 0)


def test_each_program_has_its_study_and_a_final_round(tuned: TunedAll) -> None:
    names = {p.tuning.study.name for p in tuned.parts}
    assert len(names) == 2
    assert all(p.tuning.study.finals for p in tuned.parts)
    times = [p.result.best.time_s for p in tuned.parts if p.result and p.result.best]
    assert tuned.total_s == pytest.approx(times[0] + 50 * times[1])


def test_time_away_is_not_a_program_s_own(tuned: TunedAll) -> None:
    for part in tuned.parts:
        assert part.result is not None
        spent = part.result.seconds
        assert spent["total"] == pytest.approx(sum(v for k, v in spent.items() if k != "total"))


def test_what_cannot_be_divided_is_refused() -> None:
    def wrong(match: str, programs: list[Any], weights: list[float] | None = None, trials: int = 6) -> None:
        with pytest.raises(UsageError, match=match):
            autosched.tune_all(programs, weights, "amd-zen4", trials=trials, device="simulator")

    wrong("1 trials are fewer than 2 programs", [SMALL, LARGE], trials=1)
    wrong("no program", [])
    wrong("1 weights for 2 programs", [SMALL, LARGE], [1.0])
    wrong("cannot occur 0 times", [SMALL, LARGE], [1.0, 0.0])
    wrong("cannot occur nan times", [SMALL, LARGE], [1.0, float("nan")])
    wrong("programs 1 and 2 are the same", [SMALL, SMALL])


@pytest.mark.slow
def test_on_the_command_line(cli: Cli) -> None:
    cli = cli.near()
    flags = ("-t", "amd-zen4", "-d", "simulator", "-s", "clock", "-D", "k=16")
    two = ("matmul -D m=16 -D n=16", "matmul -D m=32 -D n=32")
    found = cli("tune", *two, *flags, "-n", 4, "--occurs", "1,3", "--json").json
    assert found["schema"] == "autosched/tune-many/1"
    assert found["trials"] == {"total": 4, "done": 4}
    assert [p["occurs"] for p in found["programs"]] == [1, 3]
    assert found["time_s"] == pytest.approx(sum(p["occurs"] * p["best"]["time_s"] for p in found["programs"]))
    assert "1 trials are fewer than 2 programs" in cli("tune", *two, *flags, "-n", 1, status=2).err
    assert "--occurs 1,2,3: 3 given, for 2 programs" in cli("tune", *two, *flags, "--occurs", "1,2,3", status=2).err
    assert "not understood" in cli("tune", two[0], "matmul --fresh", *flags, status=2).err


@pytest.mark.slow
def test_one_program_in_quotes_and_names_with_spaces(cli: Cli) -> None:
    cli = cli.near()
    (cli.folder / "my product.py").write_text(
        "def f(A: f32[m, k], B: f32[k, n], C: f32[m, n], *, m=64, n=8, k=8):\n"
        "    for i, j in grid(m, n):\n        C[i, j] = 0\n        for p in range(k):\n"
        "            C[i, j] += A[i, p] * B[p, j]\n"
    )
    flags = ("-t", "amd-zen4", "-d", "simulator", "-s", "clock", "-n", 1, "--json")
    for spec in ("matmul -D m=16 -Dn=24 -D k=8", "mk, kn -> mn -D m=16 -D n=24 -D k=8", "my product.py:f -D m=16"):
        said = cli("tune", spec, *flags).json["program"]
        assert "m=16" in said, said
    assert "'-x' is not understood" in cli("tune", "matmul -D m=16 -x", *flags, status=2).err
