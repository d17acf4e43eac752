"""An argument of a wrong type is refused by name, with what was given and what is wanted: one mechanism for all."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autosched
from autosched import api, given
from autosched.errors import UsageError
from autosched.search.request import TuneRequest
from autosched.tune_options import LOOKED_UP

PROGRAM = autosched.workload("gemv", m=8, k=8)
FILL = "def fill(A: f32[n], *, n=8):\n    for i in range(n):\n        A[i] = 1"
FUNCTIONS = [getattr(api, name) for name in api.__all__ if name != "native_target"]


def tune(**options: Any) -> Any:
    return autosched.tune(PROGRAM, **{"target": "portable", "device": "simulator", **options})


@pytest.mark.parametrize("name", ["timeout", "until", "least_gain", "noise"])
@pytest.mark.parametrize("value", ["1", [1.0], True])
def test_figures_are_numbers(name: str, value: object) -> None:
    with pytest.raises(UsageError) as told:
        tune(**{name: value})
    assert told.value.message == f"{name} is {value!r}, and must be a number or None"


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: tune(store=3), "store is 3, and must be a text, a path, a Store or None"),
    (lambda: tune(store=object), "store is <class 'object'>, and must be a text, a path, a Store or None"),
    (lambda: tune(warm_from=3), "warm_from is 3, and must be a list of Studies, texts or paths"),
    (lambda: tune(warm_from="file"), "warm_from is 'file', and must be a list of Studies, texts or paths"),
    (lambda: tune(warm_from=["a", 3]), "warm_from[1] is 3, and must be a Study, a text or a path"),
    (lambda: tune(intrinsics=3), "intrinsics is 3, and must be a text, a list of texts or None"),
    (lambda: tune(intrinsics=["a", 3]), "intrinsics[1] is 3, and must be a text"),
    (lambda: tune(data=3), "data is 3, and must be a mapping of names to values or None"),
    (lambda: tune(data={3: 3}), "data has the key 3, and keys must be texts"),
    (lambda: tune(trials=True), "trials is True, and must be a whole number"),
    (lambda: tune(trials=int), "trials is <class 'int'>, and must be a whole number"),
    (lambda: tune(threads=np.zeros(2)), "threads is array([0., 0.]), and must be a whole number"),
    (
        lambda: autosched.compare(PROGRAM, cost_model=3),  # type: ignore[arg-type]
        "the cost model is given by name, and a value of type int is no text",
    ),
    (lambda: tune(seed="x"), "seed is 'x', and must be a whole number"),
    (lambda: tune(fresh="no"), "fresh is 'no', and must be True or False"),
    (lambda: tune(cache=3), "cache is 3, and must be a text"),
    (lambda: tune(on_event=3), "on_event is 3, and must be a function or None"),
    (lambda: tune(schedule=3), "schedule is 3, and must be a text, a path or None"),
    (lambda: tune(target=3), "target is 3, and must be a text, a path or a Target"),
    (lambda: autosched.parse(3), "text is 3, and must be a text"),  # type: ignore[arg-type]
    (lambda: autosched.parse(FILL, function=3), "function is 3, and must be a text or None"),  # type: ignore[arg-type]
    (lambda: autosched.parse(FILL, sizes=3), "sizes is 3, and must be a mapping of names to values or None"),  # type: ignore[arg-type]
    (lambda: autosched.workload(3), "name is 3, and must be a text"),  # type: ignore[arg-type]
    (lambda: autosched.einsum(3), "spec is 3, and must be a text"),  # type: ignore[arg-type]
    (lambda: autosched.load(3), "path is 3, and must be a text or a path"),  # type: ignore[arg-type]
    (lambda: autosched.resolve(None), "spec is None, and must be a text"),  # type: ignore[arg-type]
    (lambda: autosched.resolve("gemv", 3), "defines is 3, and must be a mapping of names to values or None"),  # type: ignore[arg-type]
    (
        lambda: autosched.match(PROGRAM, 3),  # type: ignore[arg-type]
        "intrinsics is 3, and must be a text, an Intrinsic, a list of texts or Intrinsics, or None",
    ),
    (lambda: autosched.match(PROGRAM, [3]), "intrinsics[0] is 3, and must be a text or an Intrinsic"),  # type: ignore[list-item]
    (lambda: autosched.intrinsics.load(3), "path_or_text is 3, and must be a text or a path"),
    (lambda: autosched.target(3), "name is 3, and must be a text, a path or a Target"),  # type: ignore[arg-type]
    (lambda: autosched.tune_all(3), "programs is 3, and must be a list of Programs"),  # type: ignore[arg-type]
    (lambda: autosched.tune_all([PROGRAM, 3]), "programs[1] is 3, and must be a Program"),  # type: ignore[list-item]
    (lambda: autosched.tune_all([PROGRAM], ["1"]), "weights[0] is '1', and must be a number"),  # type: ignore[list-item]
    (lambda: autosched.tune_all([PROGRAM], target="portable", goals=3), "goals is 3, and must be a Goals"),
    (lambda: autosched.compare(PROGRAM, 3), "strategies is 3, and must be a list of texts or Factories"),  # type: ignore[arg-type]
    (lambda: autosched.simulate(3), "recording is 3, and must be a text, a path or a RecordedSpace"),  # type: ignore[arg-type]
    (lambda: autosched.device("cpu", 3), "program is 3, and must be a Program or None"),
    (lambda: api.catalogue([3]), "paths[0] is 3, and must be a text or a path"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("call", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_wrong_type_is_named(call: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as told:
        call()
    assert told.value.message == said


def test_how_a_program_is_made_is_said_also_of_one_in_a_list() -> None:
    for call in (lambda: autosched.match("matmul"), lambda: autosched.tune_all(["matmul"])):  # type: ignore[arg-type,list-item]
        with pytest.raises(UsageError) as told:
            call()
        assert "autosched.workload(name, …)" in (told.value.hint or "")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (np.int32(3), int),
        (np.float32(0.5), float),
        (3, float),
        (np.bool_(True), bool),
        (Path("a"), str | Path),
        (("a", "b"), list[str]),
        ({"a"}, list[str]),
        (np.ones(3), list[float]),
        ((c for c in "ab"), list[str]),
        (range(3), int | list[int]),
        ({"a": 3}, dict[str, Any]),
    ],
)
def test_what_serves_as_well_is_taken(value: object, wanted: Any) -> None:
    given.check("it", value, wanted)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_function_is_checked_and_every_annotation_is_read(function: Callable[..., Any]) -> None:
    assert hasattr(function, "__wrapped__"), "it looks at its arguments"
    for parameter in inspect.signature(function).parameters.values():
        kind = given.annotation(function, parameter.name, api._LATER)
        assert kind is not inspect.Parameter.empty
        assert given.words(kind)


def test_a_request_looks_at_its_fields() -> None:
    machine = autosched.target("portable")
    for field in ("timeout_s", "store", "catalogue", "only", "goals", "earlier", "user_schedules"):
        with pytest.raises(UsageError, match=rf"^{field} is <object .*>, and must be "):
            TuneRequest(PROGRAM, machine, **{field: object()})  # type: ignore[arg-type]
    for name in LOOKED_UP:
        with pytest.raises(UsageError):
            TuneRequest(PROGRAM, machine, **{name: 3})  # type: ignore[arg-type]


def test_missing_and_unknown_arguments_are_pythons_to_refuse() -> None:
    with pytest.raises(TypeError, match="speed"):
        tune(speed=3)
    with pytest.raises(TypeError, match="name"):
        autosched.workload()  # type: ignore[call-arg]
