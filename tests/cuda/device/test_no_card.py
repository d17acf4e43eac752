"""Where no NVIDIA GPU is: one line that says so, and what to do instead."""

from __future__ import annotations

import sys

import pytest

from autosched.device.cuda import driver
from autosched.errors import MissingError


def test_without_a_driver_nothing_is_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It once said that a package was missing, with which nothing would have run either."""
    monkeypatch.setitem(sys.modules, "cuda", None)  # no such module
    with pytest.raises(MissingError, match="no NVIDIA driver on this machine") as caught:
        driver.bindings(lambda: False)
    assert "-d simulator" in str(caught.value)
    assert caught.value.exit_code == 3


def test_with_a_driver_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda", None)
    with pytest.raises(MissingError, match="cuda-bindings is not here") as caught:
        driver.bindings(lambda: True)
    assert "autosched[cuda]" in str(caught.value)
