"""Shared libraries of exported C: one that lacks a function is refused where it is made, not where it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compiled.c_build import COMPILER, needs_compiler

from autosched.codegen.c.export.shared_library import build_shared
from autosched.codegen.c_like.source import CSource
from autosched.errors import MissingError

pytestmark = [needs_compiler, pytest.mark.compiler]


@pytest.mark.parametrize(("called", "hint"), [("missing", "name another"), ("__kmpc_fork_call", "has no OpenMP")])
def test_a_function_that_nobody_has(called: str, hint: str, tmp_path: Path) -> None:
    source = tmp_path / "f.c"
    source.write_text(f"void {called}(void);\nvoid f(void) {{ {called}(); }}\n")
    with pytest.raises(MissingError, match=r"cannot build f\.c") as found:
        build_shared(CSource("", source.read_text(), "f"), source, "portable", [str(COMPILER)])
    assert hint in str(found.value)
