"""Values of the whole process that tests change for a while."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pytest


@pytest.fixture
def no_own_intrinsics(monkeypatch: pytest.MonkeyPatch) -> None:
    """`autosched.intrinsics.load` has added none, and what it adds is forgotten afterwards."""
    monkeypatch.setattr("autosched.api._loaded", [])


@pytest.fixture
def stream_all(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A step of CPU plans (`columns`, `prefetch`) takes panels of any size for so large that they stream: such panels
    would take a minute to check."""

    def stream(step: str) -> None:
        monkeypatch.setattr(import_module(f"autosched.tiling.steps.cpu.{step}"), "STREAMED_BYTES", 0)

    return stream
