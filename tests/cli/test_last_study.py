"""`show`, `trials`, `report` and `export` take the last study by default, and every study by its short name."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from cli.conftest import Cli


def _tune(cli: Cli, m: int) -> str:
    sizes = ["-D", f"m={m}", "-D", "n=8", "-D", "k=8"]
    return str(cli("tune", "matmul", *sizes, "-n", 1, "-s", "random", "--json").json["study"])


def _stores(cli: Cli) -> list[Path]:
    return [p for p in cli.folder.rglob("*") if p.suffix == ".db"]


def test_the_last_study_is_meant_where_none_is_named(cli: Cli) -> None:
    cli = cli.near()
    first, second = _tune(cli, 8), _tune(cli, 9)
    shown = cli("show", "--json")
    assert shown.json["study"] == second
    assert second in shown.err  # which one was taken is told
    assert _tune(cli, 8) == first  # a study that is continued is the last one
    assert cli("show", "--json").json["study"] == first
    assert first in cli("trials", "--json").err
    assert cli("report", "--json", "-o", "r.html").json["study"] == first
    assert cli("export", "-o", "k.c", "--json").json["study"] == first


@pytest.mark.slow
def test_an_older_store_answers_with_the_study_of_its_last_trial(cli: Cli) -> None:
    cli = cli.near()
    _tune(cli, 8)
    second = _tune(cli, 9)
    (path,) = _stores(cli)
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM meta WHERE key = 'last_study'")
    db.close()
    assert cli("show", "--json").json["study"] == second


def test_without_a_study_the_error_says_what_to_do(cli: Cli) -> None:
    assert "tune something first" in cli.near()("show", status=2).err


@pytest.mark.slow
def test_a_study_is_named_short_too(cli: Cli) -> None:
    cli = cli.near()
    first, second = _tune(cli, 8), _tune(cli, 9)
    short = {s["study"]: s["short"] for s in cli("studies", "--json").json}
    assert set(short) == {first, second}
    for name, brief in short.items():
        digest = brief.rpartition("-")[2]
        for text in (name, brief, digest, brief[:-1], name[:-1]):
            assert cli("show", text, "--json").json["study"] == name
        assert brief in cli("studies").out
    assert all(brief in cli("show", "matmul", status=2).err for brief in short.values())
