"""What is installed is what is here: every package is listed, every data file is covered."""

from __future__ import annotations

import configparser
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.paths import ROOT


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


@pytest.mark.parametrize(
    ("present", "wanted"), [(None, "xgboost-cpu>=3.0"), ("xgboost", "xgboost>=3.0"), ("XGBoost", "xgboost>=3.0")]
)
def test_xgboost_stays_where_it_is_and_comes_without_cuda_elsewhere(
    present: str | None, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if present is not None:
        (tmp_path / f"{present}-3.1.0.dist-info").mkdir()
        (tmp_path / f"{present}-3.1.0.dist-info" / "METADATA").write_text(f"Name: {present}\nVersion: 3.1.0\n")
    asked: dict[str, list[str]] = {}
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setitem(sys.modules, "setuptools", SimpleNamespace(setup=lambda **given: asked.update(given)))
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py")
    assert asked["install_requires"][-1] == wanted
    config = configparser.ConfigParser()
    config.read("setup.cfg")
    assert asked["install_requires"][:-1] == config["options"]["install_requires"].strip().splitlines()
