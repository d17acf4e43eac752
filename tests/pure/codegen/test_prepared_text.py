"""What packs constants is printed once for kernels that pack alike, and anew where anything that is printed differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from autosched.codegen.llvm.module import print_parts
from autosched.codegen.llvm.print_cache import KEPT, Prepared
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


class Noting(Prepared):
    """Counts the texts that it has printed."""

    printed = 0

    def of(self, kernel: Kernel, text: Callable[[], str]) -> str:
        def noted() -> str:
            self.printed += 1
            return text()

        return super().of(kernel, noted)


def kernel(extra: float = 0.0, size: int = 8, threads: int = 1, main: int = 8) -> Kernel:
    i = Var("i")
    packed = Arith("+", Read("W", (i,), F32), Literal(extra, F32), F32)
    prepare = Function("prepare_P", ("W", "P"), (For("i", Const(0), Const(size), (Assign("P", (i,), packed),)),))
    summed = Arith("+", Read("X", (i,), F32), Read("P", (i,), F32), F32)
    body = Function("main", ("X", "Y", "P"), (For("i", Const(0), Const(main), (Assign("Y", (i,), summed),)),))
    shapes = {n: Buffer(n, F32, (8,), "global", n) for n in "WXY"} | {"P": Buffer("P", F32, (size,), "packed", "W")}
    return Kernel("copy", PROGRAM, shapes, (prepare,), body, threads)


def test_kernels_that_pack_alike_have_one_text() -> None:
    known = Noting()
    one, other = print_parts(kernel(main=8), known), print_parts(kernel(main=4), known)
    assert one[0] != other[0]
    assert one[1] == other[1]
    assert known.printed == 1


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
    known = Prepared()
    print_parts(kernel(), known)
    assert print_parts(other, known)[1] == print_parts(other, Prepared())[1]


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
