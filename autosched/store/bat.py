"""Tables of results of BAT, the benchmark suite for auto-tuners (its `results/N.csv`): read into `Measured`.

A row a configuration: columns `config.NAME` with the parameters, `objective` (seconds), `validity` (`Correct`, or what
went wrong), and `times.…` with what was spent (batbench/result/result.py and dataset.py in BAT 2). The table names
neither kernel nor device: the folder's name stands for the kernel.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autosched.errors import StoreError
from autosched.store import codec
from autosched.store.measured import Configuration, Measured, Value
from autosched.store.numbers import finite, spread_of
from autosched.store.records import Measurement

PREFIX = "config."
_STATUS = {
    "Correct": "ok",
    "KnownConstraintsViolated": "refused",
    "Compile exception": "build",
    "RuntimeError": "crash",
}
"""Any other validity is a failure while running."""
_COSTS = {"build": "compile_time", "search": "algorithm_time", "framework": "framework_time"}
"""Our name of a cost to theirs."""


def is_table(text: str) -> bool:
    """Whether a text looks like a table of BAT."""
    first = text.lstrip("\ufeff").partition("\n")[0]
    return first[:1] not in "{[" and PREFIX in first and "objective" in first


def from_table(text: str, path: str) -> Measured:
    """What is in a table. Raises StoreError, naming `path` and the line."""
    rows = csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline=""))
    pairs: list[tuple[Configuration, Measurement]] = []
    try:
        names = rows.fieldnames or ()
        if len(set(names)) < len(names):
            raise ValueError("two columns have one name")
        for row in rows:
            if None in row or None in row.values():
                raise ValueError(f"it does not have {len(names)} values, as the first line has")
            chosen = {n.removeprefix(PREFIX): _value(row[n]) for n in names if n.startswith(PREFIX)}
            pairs.append((chosen, _measurement(row)))
    except (*codec.DAMAGED, csv.Error) as error:
        said = f"the column {error} is missing" if isinstance(error, KeyError) else str(error)
        raise StoreError(f"{path}:{rows.line_num}: {said}") from error
    try:
        return Measured.of(Path(path).absolute().parent.name or "kernel", "", pairs)
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from error


def _measurement(row: Mapping[str, str]) -> Measurement:
    validity = row["validity"]
    costs = {ours: _figure(row.get(f"times.{theirs}")) for ours, theirs in _COSTS.items()}
    status = _STATUS.get(validity, "crash")
    if status != "ok":
        return Measurement(status, message=row.get("error") or validity, costs_s=costs)
    samples = tuple(map(finite, _runtimes(row.get("times.runtimes") or "[]")))
    time_s = finite(float(row["objective"]))
    if time_s <= 0:
        raise ValueError(f"the objective {row['objective']} is not above 0")
    return Measurement("ok", time_s, samples, spread_of(samples), costs_s=costs | {"time": finite(sum(samples))})


def _runtimes(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except RecursionError:
        found = None
    if not isinstance(found, list):
        raise ValueError(f"the runtimes {text[:80]} are no list of numbers")
    return found


def _figure(text: str | None) -> float:
    return max(0.0, finite(float(text))) if text else 0.0


def _value(text: str) -> Value:
    """A number where the text is one."""
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    try:
        return finite(float(text))
    except ValueError:
        return text
