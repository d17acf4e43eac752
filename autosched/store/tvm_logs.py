"""Tuning logs of TVM, one JSON value a line: AutoTVM's (versions 0.1 and 0.2) and Ansor's (`tvm.auto_scheduler`).

A log holds the trials of many *tasks* (an operator with its shapes, for a target): each becomes a recording of its own.
What was decided, as numbers wherever it is one:

- AutoTVM: the knobs of a configuration. A split is a parameter for each factor (`tile_x.1`; the one that follows from
  the others is left out), an order or annotations are a text.
- Ansor: the steps of a program's history, numbered. Of step 4, a split, `4.SP.1` is the first factor. Programs whose
  steps are of other kinds came from another *sketch*: each sketch is a plan, in which all rows have the same decisions.

Formats: python/tvm/autotvm/record.py and src/auto_scheduler/measure_record.cc in TVM 0.8. AutoTVM's oldest logs are
pickles, which are never read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autosched.errors import StoreError
from autosched.store import codec
from autosched.store.json_file import JsonLines
from autosched.store.measured import LEFT_OUT, REPLACED, Configuration, Measured, Value
from autosched.store.numbers import finite, spread_of
from autosched.store.recorded_space import RecordedSpace
from autosched.store.records import Measurement

AUTOTVM = ("0.1", "0.2")
ANSOR = ("v0.2", "v0.3", "v0.4", "v0.5", "v0.6")
_STATUS = ("ok", "refused", "build", "build", "crash", "wrong", "timeout", "timeout", "crash")
"""By MeasureErrorNo, of both: none, cannot be instantiated, does not compile for the host or for the device, fails
there, is wrong, takes too long to build or to run, unknown."""


@dataclass(frozen=True)
class Record:
    """A line of a log. `task` tells tasks apart, `name` and `target` name it, `sketch` the plan its rows belong to."""

    task: str
    name: str
    target: str
    sketch: str
    decided: Configuration
    measurement: Measurement


def is_log(lines: JsonLines) -> bool:
    """Whether the first line looks like one of a log."""
    first = lines.values[0][1]
    return isinstance(first, dict) and (first.keys() >= {"input", "result"} or first.keys() >= {"i", "r"})


def from_log(lines: JsonLines, path: str) -> tuple[RecordedSpace, ...]:
    """A recording for each task that has a row that came out right, in the order of the log; each says which tasks were
    left out. Raises StoreError, naming `path` and the line, and where no row of the log came out right."""
    tasks: dict[str, list[Record]] = {}
    for number, value in lines.values:
        try:
            record = _ansor(value) if _is_ansor(value) else _autotvm(value)
        except codec.DAMAGED as error:
            said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise StoreError(f"{path}:{number}: {said}") from error
        tasks.setdefault(record.task, []).append(record)
    failed = [records[0].name for records in tasks.values() if not any(r.measurement.ok for r in records)]
    if len(failed) == len(tasks):
        said = f"none of the {len(lines.values)} trials of {len(tasks)} tasks came out right"
        raise StoreError(f"{path}: {said}")
    names = [f"the task {name}, of which no trial came out right" for name in failed]
    return tuple(
        _recording(records, path, names)
        for records in tasks.values()
        if any(r.measurement.ok for r in records)
    )


def _recording(records: Sequence[Record], path: str, left_out: Sequence[str]) -> RecordedSpace:
    sketches: dict[str, list[Record]] = {}
    for record in records:
        sketches.setdefault(record.sketch, []).append(record)
    plans, replaced = [], 0
    for number, of in enumerate(sketches.values(), start=1):
        name = f"sketch {number}" if len(sketches) > 1 else records[0].name
        try:
            measured = Measured.of(name, records[0].target, [(r.decided, r.measurement) for r in of])
        except ValueError as error:
            raise StoreError(f"{path}: {records[0].name}: {error}") from error
        plans.append(measured.plan())
        replaced += measured.replaced
    settings: dict[str, Any] = {REPLACED: replaced} if replaced else {}
    settings |= {LEFT_OUT: list(left_out)} if left_out else {}
    return RecordedSpace(
        records[0].name,
        tuple(plans),
        device={"name": records[0].target},
        legal=sum(len(p) for p in plans),
        settings=settings,
        source=f"log of TVM {path.rpartition('/')[2]}",
    )


def _is_ansor(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("v"), str)


def _autotvm(value: Mapping[str, Any]) -> Record:
    if not isinstance(value, dict):
        raise ValueError("a line of a log is a JSON object")
    version = str(value["v"] if "v" in value else value["version"])
    if version not in AUTOTVM:
        raise ValueError(f"a log of AutoTVM {version!r}; known: {', '.join(AUTOTVM)}")
    if version == "0.1":
        target, name, arguments, *_, config = value["i"]
        entity, result = config["e"], value["r"]
    else:
        target, name, arguments = value["input"][:3]
        entity, result = value["config"]["entity"], value["result"]
    decided: dict[str, Value] = {}
    for knob, kind, said in entity:
        for key, part in _knob(str(knob), kind, said):
            if key in decided:
                raise ValueError(f"the knob {key} is there twice")
            decided[key] = part
    task = json.dumps([target, name, arguments], sort_keys=True)
    words = [str(name), *(_tensor(a) for a in arguments if _is_tensor(a))]
    return Record(task, " ".join(words), str(target), "", decided, _measurement(result))


def _knob(name: str, kind: str, said: Any) -> list[tuple[str, Value]]:
    """A knob's parameters: each factor of a split but the one that is -1, else one."""
    if kind == "sp":
        if not isinstance(said, list):
            raise ValueError(f"the split {name} is {json.dumps(said)[:80]}, no list of factors")
        return [(f"{name}.{place}", _whole(f)) for place, f in enumerate(said) if f != -1]
    if kind not in ("re", "an", "ot"):
        raise ValueError(f"the knob {name} is of kind {kind!r}, none of sp, re, an, ot")
    return [(name, _scalar(said))]


def _ansor(value: Mapping[str, Any]) -> Record:
    version = value["v"]
    if version not in ANSOR:
        raise ValueError(f"a log of the auto-scheduler {version!r}; known: {', '.join(ANSOR)}")
    (key, target, *_), (_, steps) = value["i"]
    sketch: list[str] = []
    decided: dict[str, Value] = {}
    for number, step in enumerate(steps, start=1):
        kind, *arguments = step
        found = _step(f"{number}.{kind}", str(kind), arguments)
        sketch.append(f"{kind}{len(found)}")
        decided |= found
    name = _workload(key)
    task = json.dumps([key, target])
    return Record(task, name, str(target), " ".join(sketch), decided, _measurement(value["r"]))


def _step(name: str, kind: str, arguments: Sequence[Any]) -> dict[str, Value]:
    """A step's parameters: factors of a split by themselves, a pragma's number, lists as texts."""
    found: dict[str, Value] = {}
    for place, argument in enumerate(arguments):
        if kind == "SP" and isinstance(argument, list):
            found |= {f"{name}.{n}": _whole(f) for n, f in enumerate(argument, start=1)}
        elif kind == "PR" and isinstance(argument, str) and argument.rpartition("$")[2].isdecimal():
            pragma, _, amount = argument.rpartition("$")
            found |= {f"{name} pragma": pragma, f"{name}": int(amount)}
        else:
            found[f"{name} argument {place + 1}"] = _scalar(argument)
    return found


def _measurement(result: Any) -> Measurement:
    costs, error, took, *_ = result
    if isinstance(error, bool) or not isinstance(error, int) or not 0 <= error < len(_STATUS):
        raise ValueError(f"error {error!r} is none of 0 to {len(_STATUS) - 1}")
    spent = {"recorded": max(0.0, finite(took))}
    if error:
        return Measurement(_STATUS[error], message=f"error {error}", costs_s=spent)
    samples = tuple(finite(c) for c in costs)
    if not samples or min(samples) <= 0:
        raise ValueError("a trial without an error has no times above 0")
    return Measurement("ok", float(np.median(samples)), samples, spread_of(samples), costs_s=spent)


def _workload(key: Any) -> str:
    """The name in a workload key: `["conv2d_layer", 1, 7, …]` or a hash."""
    try:
        found = json.loads(str(key))
    except (ValueError, RecursionError):
        return str(key)[:80]
    return " ".join(str(part) for part in found)[:80] if isinstance(found, list) else str(found)[:80]


def _is_tensor(argument: Any) -> bool:
    return isinstance(argument, list) and len(argument) == 3 and argument[0] == "TENSOR"


def _tensor(argument: Sequence[Any]) -> str:
    return "x".join(str(size) for size in argument[1])


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"the factor {json.dumps(value)[:80]} is no whole number")
    return value


def _scalar(value: Any) -> Value:
    plain = isinstance(value, int | float | str)
    return value if plain else json.dumps(value)


