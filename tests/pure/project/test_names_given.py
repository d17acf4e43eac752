"""Where a name is asked for, a class or another value is refused with what to do instead."""

from __future__ import annotations

from typing import Any

import pytest

import autosched
from autosched.costmodel.registry import cost_model
from autosched.errors import UsageError


class Own:
    """A device, a model or a strategy of a user's."""


@pytest.mark.parametrize("given", [Own, object(), None])
@pytest.mark.parametrize("what", ["device", "cost_model", "strategy", "objective", "numerics"])
def test_tune_takes_names(what: str, given: Any) -> None:
    with pytest.raises(UsageError, match="is given by name") as told:
        autosched.tune(autosched.workload("gemv", m=8, k=8), target="portable", **{what: given})
    assert "docs/python.md" in (told.value.hint or "")


def test_devices_and_models_are_found_by_name() -> None:
    with pytest.raises(UsageError, match="the device is given by name, and Own is no text"):
        autosched.device(Own)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the cost model is given by name"):
        cost_model(Own)  # type: ignore[arg-type]
