"""`autosched tune`, `api.tune` and `TuneRequest` take the same options with the same defaults: `TuneOptions`'."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import pytest
import typer.main

from autosched import api
from autosched.cli.commands import compare, tune
from autosched.errors import UsageError
from autosched.search.request import TuneRequest
from autosched.tune_options import EFFORTS, MEANINGS, TuneOptions

TABLE = {f.name: f.default for f in fields(TuneOptions)}

SPELLED_OTHERWISE = {
    "trials": "None stands for the trials of --effort, whose default gives the table's number",
}
"""Options whose default on the command line is another, and why."""

REQUEST_FIELDS = {
    "program": "program",
    "target": "target",
    "timeout": "timeout_s",
    "store": "store",
    "intrinsics": "only",
    "plans": "families",
    "data": "program",
    "schedule": "user_schedules",
    "until": "goals",
    "least_gain": "goals",
    "warm_from": "earlier",
}
"""Parameters of `api.tune` that `TuneRequest` holds as other values, and its fields for them."""


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


def test_a_request_has_the_defaults_of_the_table() -> None:
    of_request = {f.name: f.default for f in fields(TuneRequest)}
    assert {name: of_request[name] for name in TABLE} == TABLE


def test_the_function_takes_every_option_with_its_default() -> None:
    taken = defaults(api.tune)
    assert {name: taken[name] for name in TABLE} == TABLE
    assert set(taken) - set(TABLE) - {"on_event"} == set(REQUEST_FIELDS)
    assert set(REQUEST_FIELDS.values()) <= {f.name for f in fields(TuneRequest)}


def test_the_command_takes_every_option_with_its_default() -> None:
    taken = defaults(tune.tune)
    assert {name: taken[name] for name in TABLE if name not in SPELLED_OTHERWISE} == {
        name: default for name, default in TABLE.items() if name not in SPELLED_OTHERWISE
    }
    assert taken["trials"] is None
    assert EFFORTS[taken["effort"]] == TuneOptions.trials


def test_the_command_takes_what_the_function_takes() -> None:
    own = {"context", "programs", "define", "effort", "occurs", "intrinsic", "json", "quiet", "verbose"}
    assert set(defaults(tune.tune)) - own == set(defaults(api.tune)) - {"program", "on_event"}


@pytest.mark.parametrize("command", [tune.tune, compare.compare])
def test_defaults_that_commands_share_are_the_tables(command: Callable[..., Any]) -> None:
    shared = {"cost_model", "threads", "numerics"}
    assert {name: defaults(command)[name] for name in shared} == {name: TABLE[name] for name in shared}
    assert {name: defaults(api.compare)[name] for name in shared} == {name: TABLE[name] for name in shared}


def test_help_says_what_the_table_says() -> None:
    app = typer.Typer()
    app.command()(tune.tune)
    helped = {p.name: getattr(p, "help", None) for p in typer.main.get_command(app).params}
    assert {name: helped[name] for name in TABLE} == MEANINGS


def test_every_option_has_a_default_and_a_meaning() -> None:
    assert MISSING not in TABLE.values()
    assert all(meaning.endswith(".") for meaning in MEANINGS.values())


@pytest.mark.parametrize("name", ["trials", "seed", "threads"])
@pytest.mark.parametrize("value", ["3", None, 1.5, float("nan")])
def test_counts_are_whole_numbers(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{name} is .*, and must be a whole number"):
        TuneOptions(**{name: value})
