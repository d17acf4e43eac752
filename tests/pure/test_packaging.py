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


def test_every_data_file_is_covered() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    covered: set[Path] = set()
    for package, patterns in config["options.package_data"].items():
        name = package.removeprefix("autosched.") if package != "autosched" else ""
        elsewhere = name in ("intrinsics", "targets")
        folder = ROOT / name if elsewhere else ROOT / "autosched" / name.replace(".", "/")
        covered |= {p for pattern in patterns.split(", ") for p in folder.glob(pattern.strip())}
    beside = (p for p in (ROOT / "autosched").rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc"))
    assert [p for p in beside if p not in covered] == []
