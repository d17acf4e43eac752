"""`show`, `trials`, `report` and `export` take the last study by default, and every study by its short name."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from cli.conftest import Cli

from autosched.store.sqlite import SqliteStore


def _tune(cli: Cli, m: int) -> str:
    sizes = ["-D", f"m={m}", "-D", "n=8", "-D", "k=8"]
    return str(cli("tune", "matmul", *sizes, "-n", 1, "-s", "random", "--json").json["study"])


def _stores(cli: Cli) -> list[Path]:
    return [p for p in cli.folder.rglob("*") if p.suffix == ".db"]


@pytest.mark.slow
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


def test_a_study_without_trials_is_not_the_last_one(cli: Cli) -> None:
    cli = cli.near()
    tuned = _tune(cli, 8)
    (path,) = _stores(cli)
    with SqliteStore(path) as store:
        empty = replace(store.study(tuned), name="empty@native-cpu-abcdef")
        store.open(empty)
    shown = cli("show", "--json")
    assert shown.json["study"] == tuned
    assert f"{empty.name} was begun later and has no trials" in shown.err
    with SqliteStore(path) as store:
        store.delete(tuned)
    assert "holds no study that has a trial" in cli("show", status=2).err


def test_studies_and_show_tell_one_best_time(cli: Cli) -> None:
    """The final round counts before the search, for every command."""
    cli = cli.near()
    tuned = _tune(cli, 8)
    (path,) = _stores(cli)
    with SqliteStore(path) as store:
        (first, *_) = store.trials(tuned)
        slow = replace(first.measurement, time_s=1.0, samples_s=(1.0,))
        fast = replace(first.measurement, time_s=1e-9, samples_s=(1e-9,))
        store.append(tuned, replace(first, number=2, row=first.row + 1, measurement=fast))  # lost the final round
        store.append(tuned, replace(first, round="final", measurement=slow))
    (study,) = cli("studies", "--json").json
    assert study["best_s"] == cli("show", "--json").json["trial"]["measurement"]["time_s"] == 1.0
