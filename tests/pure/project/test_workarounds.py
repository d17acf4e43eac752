"""Workarounds for compilers: each has its versions, its reason and a test, and the code names it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from support.paths import ROOT

from autosched.codegen import workarounds
from autosched.codegen.workarounds import Workaround

ALL = {name: value for name, value in vars(workarounds).items() if isinstance(value, Workaround)}
PAGES = [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]


@cache
def named(file: Path) -> frozenset[str]:
    """What a file takes of the module: `workarounds.HELD`."""
    text = file.read_text(encoding="utf-8")
    if "workarounds" not in text:
        return frozenset()
    attributes = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute))
    return frozenset(n.attr for n in attributes if isinstance(n.value, ast.Name) and n.value.id == "workarounds")


@pytest.mark.parametrize("name", ALL)
def test_each_says_what_it_is_for(name: str) -> None:
    workaround = ALL[name]
    assert re.search("GCC|Clang|zig|LLVM|NVRTC|ptxas", workaround.compiler)
    assert re.search(r"\d", workaround.versions)
    assert workaround.reason


@pytest.mark.parametrize("name", ALL)
def test_each_has_a_test(name: str) -> None:
    file, function = ALL[name].test.split("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert function.startswith("test_")
    assert function in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def test_each_is_named_where_it_is_used() -> None:
    files = [f for f in (ROOT / "autosched").rglob("*.py") if f != Path(str(workarounds.__file__))]
    used = frozenset[str]().union(*map(named, files))
    assert set(ALL) - used == set()


def test_pages_name_those_there_are() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set() < set(re.findall(r"`workarounds\.(\w+)`", text)) <= set(ALL)
