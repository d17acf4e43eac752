"""Files and modules that the pages name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.paths import ROOT

PAGES = [p for p in (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))) if p.name != "CHANGELOG.md"]
ROOMS = [p.name for p in sorted((ROOT / "autosched").iterdir()) if (p / "__init__.py").is_file()]
TOPS = ["autosched", "tests", "benchmarks", "examples", "notebooks", "targets", *ROOMS]
FILE = re.compile(rf"(?<![\w./-])((?:{'|'.join(TOPS)})/[\w./-]+\.py)\b")
MODULE = re.compile(r"python -m ((?:autosched|benchmarks|tests)[\w.]*\w)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_paths(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lost = [f for f in FILE.findall(text) if not any((base / f).is_file() for base in (ROOT, ROOT / "autosched"))]
    modules = [ROOT / module.replace(".", "/") for module in MODULE.findall(text)]
    lost += [str(m) for m in modules if not (m.with_suffix(".py").is_file() or (m / "__main__.py").is_file())]
    assert lost == []
