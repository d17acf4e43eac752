"""The masks of the first lanes of a vector in exported C, as numbers: of each width, up to all lanes and past them."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from support.compiled.c_build import COMPILER, needs_compiler

from autosched.codegen.c.registers import _MASKED as MASKED

pytestmark = [needs_compiler, pytest.mark.compiler]


@pytest.mark.x86
def test_masks_have_one_bit_for_each_lane_that_counts(tmp_path: Path) -> None:
    """The number of lanes is a text of its own, a choice between bounds, as loads and stores at an end have it."""
    assert COMPILER is not None
    counted = {(size, width): width // size for size, width in MASKED}
    functions = [
        f"uint64_t mask_{size}_{width}(ptrdiff_t c) "
        f"{{ return {MASKED[size, width].mask(f'c < 0 ? 0 : c > {lanes} ? {lanes} : c')}; }}"
        for (size, width), lanes in counted.items()
    ]
    source, library = tmp_path / "masks.c", tmp_path / "masks.so"
    source.write_text("#include <immintrin.h>\n#include <stddef.h>\n#include <stdint.h>\n" + "\n".join(functions))
    subprocess.run([COMPILER, "-shared", "-fPIC", "-mavx512bw", str(source), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    for (size, width), lanes in counted.items():
        mask = getattr(loaded, f"mask_{size}_{width}")
        mask.restype, mask.argtypes = ctypes.c_uint64, [ctypes.c_ssize_t]
        for count in (-3, 0, 1, lanes - 1, lanes, lanes + 1, 1000):
            kept = min(max(count, 0), lanes)
            assert mask(count) == (1 << kept) - 1, (size, width, count)
