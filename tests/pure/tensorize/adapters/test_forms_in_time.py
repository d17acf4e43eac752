"""Forms are found after a run, and within its time."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from autosched.search.tuning import tune
from autosched.search.tuning.deadline import Deadline
from autosched.search.tuning.tune import Tuning


def asked(deadline: Deadline, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    def endless(*_: object) -> list[object]:
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(tune, "better_forms", endless)
    monkeypatch.setattr(tune, "usable", lambda *_: ())
    nothing = cast(Any, None)
    request: Any = SimpleNamespace(catalogue=None, target=None, device="cpu", only=(), numerics="real")
    match: Any = SimpleNamespace(program=None)
    return Tuning(request, nothing, nothing, (match,), (), nothing, deadline=deadline).forms


def test_none_where_finding_them_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "FORMS_S", 0.05)
    assert asked(Deadline(None), monkeypatch) == ()


@pytest.mark.parametrize("ago", [0.0, 10.0])
def test_none_past_the_end_of_the_run(ago: float, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(Deadline(0.05, began=time.monotonic() - ago), monkeypatch) == ()
