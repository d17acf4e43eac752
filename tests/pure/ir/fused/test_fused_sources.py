"""Examples and built-in workloads of fused chains have one text, and every function of it is a workload."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

import pytest
from support.paths import ROOT

import autosched.ir as ir
from autosched.ir.workload import FAMILIES

TEXTS = ROOT / "autosched" / "ir" / "workloads" / "fused"
FILES = sorted(p for p in TEXTS.glob("*.py") if p.name != "__init__.py")


def functions(file: Path) -> set[str]:
    return {n.name for n in ast.parse(file.read_text("utf-8")).body if isinstance(n, ast.FunctionDef)}


def test_examples_are_copies_of_the_workloads() -> None:
    """No links: archives and some systems make text files of these."""
    examples = sorted((ROOT / "examples" / "fused").glob("*.py"))
    assert {e.name: e.read_bytes() for e in examples} == {f.name: f.read_bytes() for f in FILES}
    assert not [p for p in (ROOT / "examples").rglob("*") if p.is_symlink()]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_every_function_is_a_workload(file: Path) -> None:
    reached = set()
    for family in FAMILIES.values():
        if family.file == f"fused/{file.stem}":
            ((option, values),) = family.options.items() or (("", ("",)),)
            reached |= {family.function({option: v}) for v in values}
    assert reached == functions(file)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_the_header_names_functions_that_are_there(file: Path) -> None:
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    commands = [line.partition(" # ")[0].split() for line in text.splitlines() if line.strip().startswith("autosched ")]
    assert {c[1] for c in commands} == {"rewrite", "tune"}
    for _, _, program, *more in commands:
        defines = [d.split("=") for flag, d in pairwise(more) if flag == "-D"]
        assert program.startswith(f"examples/fused/{file.name}")
        ir.resolve(str(ROOT / program), {name: int(value) for name, value in defines})
