"""No module imports itself by way of others, counting imports inside functions and those for types only."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import autosched


def imports_of(sources: dict[str, str]) -> dict[str, set[str]]:
    """The modules among `sources` (name to text) that each one imports, anywhere in its text. A name that a package
    re-exports counts as an import of the package, a submodule as one of the submodule."""
    found: dict[str, set[str]] = {}
    for module, text in sources.items():
        named: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.ImportFrom(module=str() as origin, level=0):
                    named |= {full if (full := f"{origin}.{a.name}") in sources else origin for a in node.names}
                case ast.Import():
                    named |= {a.name for a in node.names}
        found[module] = (named & sources.keys()) - {module}
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """One circle of imports, its first module again at the end; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    root = Path(autosched.__file__).parent
    sources = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root.parent).with_suffix("").parts
        sources[".".join(parts).removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return imports_of(sources)


def test_no_import_circles(graph: dict[str, set[str]]) -> None:
    assert circle(graph) == []


def test_imports_anywhere_count() -> None:
    sources = {
        "a": "def f():\n    from p.b import x\n",
        "p.b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import c\n",
        "p.c": "import a\n",
        "p": "",
    }
    graph = imports_of(sources)
    assert graph == {"a": {"p.b"}, "p.b": {"p.c"}, "p.c": {"a"}, "p": set()}
    assert set(circle(graph)) == {"a", "p.b", "p.c"}
    assert circle({**graph, "p.c": set()}) == []
