"""What packs constants is printed once for kernels that pack alike, and anew where anything that is printed differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autosched.codegen.llvm import module
from autosched.codegen.llvm.prepared import KEPT, Prepared
from autosched.codegen.tree.kernel import Assign, Buffer, For, Function, Kernel
from autosched.codegen.tree.uses import called_functions, used_buffers
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Arith, Call, Literal, Read
from autosched.logic import Const, Var

PROGRAM = parse("""
def added(W: const[f32[8]], X: f32[8], Y: f32[8]):
    for i in range(8):
        Y[i] = X[i] + W[i]
""")
F32 = DTYPES["f32"]


@pytest.fixture(autouse=True)
def none_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PREPARED", Prepared())


def kernel(extra: float = 0.0, size: int = 8, threads: int = 1, main: int = 8) -> Kernel:
    i = Var("i")
    packed = Arith("+", Read("W", (i,), F32), Literal(extra, F32), F32)
    prepare = Function("prepare_P", ("W", "P"), (For("i", Const(0), Const(size), (Assign("P", (i,), packed),)),))
    summed = Arith("+", Read("X", (i,), F32), Read("P", (i,), F32), F32)
    body = Function("main", ("X", "Y", "P"), (For("i", Const(0), Const(main), (Assign("Y", (i,), summed),)),))
    shapes = {n: Buffer(n, F32, (8,), "global", n) for n in "WXY"} | {"P": Buffer("P", F32, (size,), "packed", "W")}
    return Kernel("copy", PROGRAM, shapes, (prepare,), body, threads)


def prints(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of functions, as they are printed."""
    named: list[str] = []
    print_one = module._function
    monkeypatch.setattr(module, "_function", lambda shared, f: named.append(f.name) or print_one(shared, f))
    return named


def test_kernels_that_pack_alike_have_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    named = prints(monkeypatch)
    one, other = module.print_parts(kernel(main=8)), module.print_parts(kernel(main=4))
    assert one[0] != other[0]
    assert one[1] == other[1]
    assert named == ["main", "prepare_P", "main"]


@pytest.mark.parametrize(
    "other",
    [
        kernel(extra=-0.0),
        kernel(extra=1.0),
        kernel(size=7),
        kernel(threads=2),
        replace(kernel(), isa="x86"),
        replace(kernel(), vector_bytes=32),
        replace(kernel(), buffers=kernel().buffers | {"W": Buffer("W", F32, (8,), "packed", "W")}),
    ],
    ids=["sign of zero", "number", "size", "threads", "isa", "vectors", "alignment"],
)  # fmt: skip
def test_whatever_printing_reads_is_looked_at(other: Kernel) -> None:
    module.print_parts(kernel())
    found = module.print_parts(other)[1]
    module._PREPARED = Prepared()
    assert found == module.print_parts(other)[1]


def test_few_are_kept() -> None:
    known = Prepared()
    for number in range(2 * KEPT):
        assert known.of(kernel(extra=float(number)), lambda n=number: str(n)) == str(number)
    assert len(known.texts) == KEPT
    assert known.of(kernel(extra=0.0), lambda: "again") == "again"


def test_buffers_and_functions_of_a_body_that_stands_twice() -> None:
    i = Var("i")
    inner = (Assign("A", (i,), Call("f", (Read("B", (i,), F32),), F32)),)
    twice = For("i", Const(0), Const(2), inner), For("i", Const(2), Const(4), inner)
    body = (*twice, Assign("C", (i,), Literal(0.0, F32)))
    assert used_buffers(body) == {"A", "B", "C"}
    assert called_functions(body) == {"f"}
