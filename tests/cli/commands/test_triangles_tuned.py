"""Triangular programs, and outputs written in parts, through the command line."""

from __future__ import annotations

import ctypes
import shutil

import numpy as np
import pytest
from cli.conftest import Cli
from support.programs.parts import IN_PARTS
from support.programs.triangles import TRIANGLES

COMPILER = shutil.which("gcc") or shutil.which("clang")


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIANGLES)
def test_triangles_are_tuned(cli: Cli, name: str) -> None:
    """Rows long enough to be asked for ahead of time once ended in a traceback."""
    text = TRIANGLES[name].replace("n=20, d=8", "n=160, d=8").replace("n=6, d=40", "n=12, d=160")
    (cli.folder / "program.py").write_text(text.replace("n=8, d=64", "n=16, d=1024"))
    done = cli.near()("tune", "program.py", "-n", 2, "-q", "--json")
    assert done.json["best"]


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_outputs_in_parts_are_exported(cli: Cli) -> None:
    near = cli.near()
    (cli.folder / "rope.py").write_text(IN_PARTS["halves of a rotation"])
    near("tune", "rope.py", "-n", 1, "-q", "-d", "cpu")
    near("export", "-o", "rope.c", "--shared", "--torch")
    assert "Y: f32[6][32], written" in (cli.folder / "rope.h").read_text()
    assert "_OUTPUTS = {'Y'" in (cli.folder / "rope_torch.py").read_text()
    rng = np.random.default_rng(0)
    x, c, s = (rng.random(shape, np.float32) for shape in ((6, 32), (6, 16), (6, 16)))
    y = np.full((6, 32), np.nan, np.float32)
    ctypes.CDLL(str(cli.folder / "rope.so")).rope(*(ctypes.c_void_p(a.ctypes.data) for a in (x, c, s, y)))
    a, b = x[:, :16], x[:, 16:]
    np.testing.assert_allclose(y, np.hstack([a * c - b * s, b * c + a * s]), rtol=1e-5)


@pytest.mark.slow
def test_outputs_in_parts_of_a_gpu_are_operators(cli: Cli) -> None:
    near = cli.near()
    (cli.folder / "rope.py").write_text(IN_PARTS["pairs of a rotation"])
    near("tune", "rope.py", "-n", 1, "-q", "-t", "nvidia-h200", "-d", "simulator")
    near("export", "-o", "rope.cu", "--torch")
    assert "_OUTPUTS = {'Y'" in (cli.folder / "rope_torch.py").read_text()
    near("tune", "conv2d", "-D", "n=1", "-D", "h=6", "-D", "w=6", "-D", "ci=32", "-D", "co=32", "-D", "groups=2",
         "-D", "t=f16", "-D", "out=f16", "-n", 1, "-q", "-t", "nvidia-h200", "-d", "simulator")  # fmt: skip
    near("export", "-o", "grouped.cu", "--torch")
    assert "_OUTPUTS = {'Y'" in (cli.folder / "grouped_torch.py").read_text()
