"""A class name of the package means one thing: it is defined once."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import autosched

SAME = {"Assign"}
"""Names of one meaning at two places: an assignment of a program, and of a kernel."""


def test_no_class_name_has_two_meanings() -> None:
    found = defaultdict(list)
    root = Path(autosched.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(root)))
    twice = {name: places for name, places in found.items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in SAME} == {}
    assert set(twice) >= SAME
