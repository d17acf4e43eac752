"""Plug-ins as packages bring them: entry points of a distribution on Python's path."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

PlugIn = Callable[[str, object], None]
"""Offers an object as `mine` to the plug-ins of a group (`autosched.devices`), as `made` of the module `package`."""


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlugIn:
    """A distribution whose entry points a test says; a later object takes the place of an earlier one."""
    module, groups = ModuleType("package"), list[str]()
    described = tmp_path / "plugged" / "package-1.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: package\nVersion: 1.0\n")

    def offer(group: str, made: object) -> None:
        vars(module)["made"] = made
        if group not in groups:
            groups.append(group)
        (described / "entry_points.txt").write_text("".join(f"[{g}]\nmine = package:made\n" for g in groups))

    monkeypatch.setitem(sys.modules, "package", module)
    monkeypatch.syspath_prepend(described.parent)
    return offer
