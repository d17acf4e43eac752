"""Every question to the solver can be written out, and another solver gives the same answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pure.tensorize.matcher.test_match_sound import CONV
from support.match.computes import CATALOGUE, made_up

from autosched.errors import UsageError
from autosched.ir import parse
from autosched.tensorize import match

GATHER = """
def f(A: u8[3, 5], idx: s32[4], B: s8[5, 3], C: s32[4, 3]):
    for i, j in grid(4, 3):
        for k in range(5):
            C[i, j] += s32(A[idx[i], k]) * s32(B[k, j])
"""
SCATTER = GATHER.replace("C[i, j]", "C[idx[i], j]")
SYMBOLIC = """
def f(A: u8[m, k], B: s8[k, n], C: s32[m, n], *, m=7, n=8, k=8):
    for i, j, p in grid(m, n, k):
        C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""
SCALED = "def f(A: s16[8], B: s16[8], C: s16[8]):\n    for i in range(8):\n        C[i] += (A[i] + B[i]) * 4\n"
SHIFTED = "def m(a: s16[8], b: s16[8], c: s16[8]):\n for i in range(8):\n  c[i] += (b[i] + a[i]) << 2"
WINDOW = "def m(a: u8[6], b: s8[3], c: s32[4]):\n for i, k in grid(4, 3):\n  c[i] += s32(a[i + k]) * s32(b[k])"
STRIDED = """
def f(A: u8[30], B: s8[3], C: s32[8]):
    for i, k in grid(8, 3):
        C[i] += s32(A[i * 2 + k]) * s32(B[k])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The questions of matches, refusals, and bodies that need the solver."""
    into = tmp_path_factory.mktemp("smt")
    vnni = [CATALOGUE["x86/vpdpbusd.zmm"]]
    for name, text, sizes in (("conv", CONV, {}), ("gather", GATHER, {}), ("scatter", SCATTER, {}),
                              ("symbolic", SYMBOLIC, {"m": "1..4096"})):  # fmt: skip
        match(parse(text, sizes=dict(sizes)), vnni, dump_smt=into / name)
    match(parse(SCALED), [made_up(SHIFTED)], dump_smt=into / "body")
    for name, text in (("window", STRIDED.replace("i * 2", "i")), ("strided", STRIDED)):
        match(parse(text), [made_up(WINDOW)], dump_smt=into / name)
    return into


def expected(path: Path) -> str:
    (line,) = [x for x in path.read_text(encoding="utf-8").splitlines() if x.startswith("(set-info :status")]
    return line.removeprefix("(set-info :status ").removesuffix(")")


def test_questions_are_written_and_told(folder: Path) -> None:
    files = sorted(folder.rglob("*.smt2"))
    assert len(files) >= 12
    answers = {expected(f) for f in files}
    assert {"sat", "unsat"} <= answers
    first = sorted((folder / "conv").iterdir())[0].read_text(encoding="utf-8")
    assert first.startswith("; axes: Y[b, y, x, o] is another element for every other b, y, x, o\n; unsat proves it;")
    assert first.rstrip().endswith("(check-sat)")
    assert any(f.name.split("-")[1] == "body" for f in files)


@pytest.mark.slow
def test_another_solver_agrees(folder: Path) -> None:
    cvc5 = pytest.importorskip("cvc5", reason="cvc5 is not installed")
    for path in sorted(folder.rglob("*.smt2")):
        want = expected(path)
        if want == "unknown" or ("body" in path.name and want == "unsat"):
            continue  # products of 16 bits take another solver minutes
        solver = cvc5.Solver()
        solver.setOption("tlimit-per", "20000")
        parser = cvc5.InputParser(solver)
        parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(path))
        said = []
        while not (command := parser.nextCommand()).isNull():
            said.append(command.invoke(solver, parser.getSymbolManager()).strip())
        assert said[-1] == want, path.read_text(encoding="utf-8")


def test_a_fresh_process_agrees(folder: Path) -> None:
    files = [f for f in sorted(folder.rglob("*.smt2")) if expected(f) != "unknown"]
    program = "import sys, z3\nfor p in sys.argv[1:]:\n s = z3.Solver()\n s.from_file(p)\n print(s.check())\n"
    done = subprocess.run([sys.executable, "-c", program, *map(str, files)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [expected(f) for f in files]


def test_nothing_is_written_unasked(tmp_path: Path) -> None:
    match(parse(GATHER), [CATALOGUE["x86/vpdpbusd.zmm"]])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made a folder"):
        match(parse(GATHER), [CATALOGUE["x86/vpdpbusd.zmm"]], dump_smt=tmp_path / "file")
