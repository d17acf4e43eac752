"""`tune --schedule FILE`: an exported schedule is measured first, and never built where a rule excludes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import NAME, SMALL, Cli

from autosched.machine.host import host_features


def changed(file: Path, plan: str | None = None, **decisions: int | str) -> Path:
    """The exported schedule with other decisions, beside it."""
    data: Any = json.loads(file.read_text())
    data["trial"]["schedule"] |= decisions
    data["trial"]["plan"] = plan or data["trial"]["plan"]
    beside = file.with_name("changed.json")
    beside.write_text(json.dumps(data))
    return beside


@pytest.fixture
def exported(tuned: Cli, cli: Cli) -> Path:
    file = cli.folder / "best.json"
    tuned.near()("export", NAME, "-o", file)
    return file


@pytest.mark.slow
def test_it_is_measured_first_and_once(cli: Cli, exported: Path) -> None:
    cli, schedule = cli.near(), json.loads(exported.read_text())["trial"]["schedule"]
    alone = cli("tune", *SMALL, "-n", 1, "--schedule", exported, "--json").json
    assert alone["best"]["schedule"] == schedule
    cli("tune", *SMALL, "-n", 4, "--schedule", exported, "-q")
    rows = [t["schedule"] for t in cli("trials", NAME, "--json").json if t["round"] == "search"]
    assert len(rows) == 4
    assert rows.count(schedule) == 1


@pytest.mark.slow
@pytest.mark.skipif("amx_int8" in host_features(), reason="AMX has few matrix registers, and no rule for vector ones")
def test_what_a_rule_excludes_is_refused_with_the_rule(cli: Cli, exported: Path) -> None:
    wider = [a.replace("n=32", "n=256") for a in SMALL]  # plans have the same names
    said = cli.near()("tune", *wider, "-n", 1, "--schedule", changed(exported, reg_i=14, reg_j=4), status=2).err
    assert "the schedule is not legal for 'C: x86/" in said
    assert "vector registers >" in said
    assert "help: the nearest legal ones have reg_" in said
    assert "Traceback" not in said
    assert cli.near()("studies", "--json").json == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "changes", "said"),
    [
        ((), {"reg_i": 999}, "reg_i cannot be 999"),
        ((), {"order": "k j i"}, "unknown value of order 'k j i'"),
        ((), {"reg_q": 1}, "'reg_q'"),
        ((), {"reg_i": "1"}, "reg_i is a number, and '1' is a text\nhelp: write 1 without quotes"),
        ((), {"reg_i": "one"}, "reg_i is a number, and 'one' is a text\nhelp: its values: 1, 2, "),
        ((), {"plan": "C: x86/none"}, "no plan here is called 'C: x86/none'"),
        (("matmul",), {}, "--schedule is for one program"),
    ],
)
def test_what_cannot_be_taken(
    cli: Cli, exported: Path, arguments: tuple[str, ...], changes: dict[str, Any], said: str
) -> None:
    file = changed(exported, **changes)
    assert said in cli.near()("tune", *arguments, *SMALL, "-n", 2, "--schedule", file, status=2).err


def test_a_file_that_is_none(cli: Cli) -> None:
    (cli.folder / "no.json").write_text("{}")
    assert "is not an exported schedule" in cli.near()("tune", *SMALL, "--schedule", "no.json", status=2).err
    assert "cannot read" in cli.near()("tune", *SMALL, "--schedule", "absent.json", status=2).err


def test_what_has_no_effect_is_told(cli: Cli) -> None:
    """Blocks of as many tiles as there are: the schedule is measured without them, which a note says."""
    near, vectors = cli.near(), ("-i", "x86/vp*")  # a matrix unit has too few tiles to cut
    near("tune", *SMALL, *vectors, "-n", 1, "-q")
    near("export", NAME, "-o", "one.json")
    schedule = json.loads((cli.folder / "one.json").read_text())["trial"]["schedule"]
    assert (schedule["block_i"], max(schedule["reg_i"], 2)) == (0, schedule["reg_i"])
    file = changed(cli.folder / "one.json", block_i=16)
    said = near("tune", *SMALL, *vectors, "-n", 1, "--schedule", file).err
    assert "of the schedule given block_i = 16 has no effect, and is taken for 0" in said
