"""Machine code that LLVM makes with workarounds of the printer and of the compiler's options, for machines by name."""

from __future__ import annotations

import re

import pytest
from cpu.codegen.c.test_register_pressure import tile
from cpu.codegen.c.test_scarce_registers import ZEN_3, rows
from support.compiled.machine_code import instructions
from support.programs.value_cases import kernel_of, read

from autosched.codegen.llvm.machine.compile import assembly, compile_object
from autosched.codegen.llvm.machine.errors import LlvmCompileError
from autosched.codegen.llvm.module import print_llvm
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Arith, Cast, Value

pytestmark = pytest.mark.x86
LINUX = ZEN_3["triple"]


def made(value: Value, operand: str, lanes: int, cpu: str) -> str:
    """A value of `x` and `y` as machine code."""
    inputs = dict.fromkeys("xy", DTYPES[operand])
    return assembly(print_llvm(kernel_of("f", {"z": value}, inputs, 4 * lanes, lanes)), cpu, triple=LINUX)


def test_vectors_are_as_wide_as_the_machine_s() -> None:
    """LLVM tunes Skylake's for 256 bits, and took products of 32 bytes apart."""
    byte = DTYPES["u8"]
    text = made(Arith("*", read("x", byte), read("y", byte), byte), "u8", 32, "skylake-avx512")
    assert "zmm" in text


def test_addresses_are_those_of_the_text() -> None:
    """Strength reduction makes a counter of each of the twelve places that a tile's sums are stored to."""
    added = re.findall(r"\t(?:add|sub|inc)q\s+\S+, %r(?!sp)\w+", assembly(print_llvm(tile(4, 3, 72)), **ZEN_3))
    assert 0 < len(added) <= 8


def test_an_intrinsic_that_llvm_does_not_have_is_refused() -> None:
    name = "@llvm.nonsense.f32"
    text = f"declare void {name}(ptr)\ndefine void @f(ptr %x) {{\n  call void {name}(ptr %x)\n  ret void\n}}\n"
    with pytest.raises(LlvmCompileError, match=r"no intrinsic llvm\.nonsense\.f32"):
        compile_object(text)


@pytest.mark.parametrize(("source", "dtype", "lanes"), [("f32", "s32", 16), ("f32", "u8", 16), ("f64", "s32", 8)])
def test_clamped_conversions_stay_vectors(source: str, dtype: str, lanes: int) -> None:
    """30, 34 and 26 instructions; by LLVM's intrinsic 187, 93 and 71."""
    value = Cast(read("x", DTYPES[source]), DTYPES[dtype], True)
    assert len(instructions(made(value, source, lanes, "znver3"))) < 50


def test_numbers_in_memory_are_not_repeated() -> None:
    """81 broadcasts of constants in four rows of a softmax, 152 where LLVM knows the others' values too."""
    text = assembly(print_llvm(rows(**{"M.rows": 4})), **ZEN_3)
    assert len(re.findall(r"vbroadcast\w+\s+\.\w+\(%rip\)", text)) < 110


def test_bf16_is_rounded_in_integers() -> None:
    text = made(Cast(read("x", DTYPES["f32"]), DTYPES["bf16"]), "f32", 16, "sapphirerapids")
    assert "vpsrld" in text
    assert "vcvtne" not in text
