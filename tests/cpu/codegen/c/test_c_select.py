"""Selections of whole vectors stay blends whichever level GCC optimises at."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from autosched.codegen.c.registers import VectorHelpers
from autosched.codegen.c.vector_helpers import LaneHelpers
from autosched.ir.dtypes import DTYPES

GCC = shutil.which("gcc")


@pytest.mark.skipif(GCC is None, reason="no gcc on this machine")
@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_a_selection_is_a_blend(level: str, tmp_path: Path) -> None:
    assert GCC is not None
    found = subprocess.run([GCC, "-dumpversion"], capture_output=True, text=True, check=True).stdout
    if int(found.split(".")[0]) < 12:
        pytest.skip("GCC 11 vectorises nothing at -O2")
    vectors = VectorHelpers()
    chosen = LaneHelpers(vectors, 16, 64).select(DTYPES["f32"], "x <= y", "y", "x + y")
    source = tmp_path / "f.c"
    source.write_text(
        "#include <stdint.h>\n#include <string.h>\n#define VECTOR_INLINE static inline __attribute__((always_inline))\n"
        + "\n".join([*vectors.typedefs.values(), *vectors.functions.values()])
        + f"\nvoid f(const f32x16 *a, const f32x16 *b, f32x16 *c) {{ f32x16 x = *a, y = *b; *c = {chosen}; }}\n"
    )
    command = [GCC, "-std=gnu11", level, "-mavx512f", "-S", "-Wall", "-Wextra", "-Werror", str(source), "-o", "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line for line in text.splitlines() if line.startswith("\t") and not line.startswith("\t.")]
    assert len(lines) < 12, text  # loads, a comparison, a blend or an addition under a mask, a store
