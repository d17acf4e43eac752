"""What C compilers make of a few lines, or of an exported kernel; for tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.compiled.c_build import WARNINGS

from autosched.codegen.c import CSource
from autosched.codegen.c.registers import VectorHelpers

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="no gcc on this machine")
HEAD = """\
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#define VECTOR_INLINE static inline __attribute__((always_inline))
"""


def snippet(vectors: VectorHelpers, function: str) -> str:
    """A file of one function that calls helpers on vectors."""
    return HEAD + "\n".join([*vectors.typedefs.values(), *vectors.functions.values(), function, ""])


def assembly(text: str | CSource, folder: Path, *flags: str, compiler: list[str] | None = None) -> str:
    """What a compiler (GCC) makes of a file, without warnings; of an exported kernel, with the flags that it names."""
    source = text.source if isinstance(text, CSource) else text
    if isinstance(text, CSource):
        (folder / f"{text.name}.h").write_text(text.header)
        flags = (*text.flags.split(), *flags)
    (folder / "f.c").write_text(source)
    own = ["-S", "-g0", "-Wno-unused-command-line-argument", "f.c", "-o", "f.s"]
    command = [*(compiler or ["gcc"]), "-std=gnu11", "-O2", *flags, *WARNINGS, *own]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return (folder / "f.s").read_text()


def instructions(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("\t") and not line.startswith("\t.")]
