"""Register tiles that take all vector registers: no compiler keeps their sums on the stack inside the loop."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest
from support.plans import machine, plans_of

from autosched.codegen.c import print_c
from autosched.codegen.c.register_pressure import high_pressure_sums
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.machine.target import Target

INSTRUCTION = re.compile("vfmadd|vpmaddubsw")
NAMES = [name for name in ("gcc", "clang", *(f"clang-{v}" for v in range(14, 24))) if which(name)]
COMPILERS = [[name] for name in {Path(str(which(name))).resolve(): name for name in reversed(NAMES)}.values()][::-1]
"""Each once: `clang` is another name of one of them."""
COMPILERS += [[sys.executable, "-m", "ziglang", "cc"]] if find_spec("ziglang") else []
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-command-line-argument"]
"""Zig hands Clang a `-c` of its own beside `-S`."""


AVX2 = machine(frozenset(["avx2", "fma"]), registers=16, vector_bytes=32)


def scheduled(program: Program, instruction: str, wanted: dict[str, object], target: Target = AVX2) -> Kernel:
    plan = plans_of(program, target, only=(instruction,))[0]
    found = (plan.space.schedule(int(row)) for row in plan.space.enumerate().ids)
    return lower(plan, next(s for s in found if wanted.items() <= s.named.items()))


@cache
def tile(rows: int, columns: int, n: int) -> Kernel:
    """A product of f32 matrices in register tiles of AVX2, with a packed operand."""
    wanted = {"reg_i": rows, "reg_j": columns, "block_i": 0, "block_p": 0, "pack_b": "panel", "unroll": 1}
    return scheduled(workload("matmul", m=32, n=n, k=24), "x86/vfmadd.f32.ymm", {**wanted, "inner": "rows"})


BYTES = """
def matmul(A: u8[m, k], B: const[s8[k, n]], C: s32[m, n], *, m=32, n=32, k=64):
    assume(-64 <= B <= 64)
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""


@cache
def bytes_tile() -> Kernel:
    """A product of bytes in tiles of 4x2, two steps of the depth a round."""
    wanted = {"reg_i": 4, "reg_j": 2, "block_i": 0, "block_p": 0, "pack_b": "panel", "unroll": 2, "inner": "rows"}
    return scheduled(parse(BYTES), "x86/vpmaddubsw.vpmaddwd.ymm", wanted)


@cache
def window() -> Kernel:
    """A convolution of 3x3 with channels first in tiles of two lines, three pixels and two vectors of channels."""
    sizes = {"h": 14, "w": 14, "ci": 8, "co": 32, "kh": 3, "kw": 3, "pad": 1, "layout": "nchw"}
    wanted = {"reg_y": 2, "reg_x": 3, "reg_o": 2, "unroll": 1, "loads": "each", "pack_b": "panel", "inner": "rows"}
    return scheduled(workload("conv2d", **sizes), "x86/vfmadd.f32.ymm", wanted)


@pytest.mark.slow
def test_a_tile_is_crowded_where_a_second_set_of_operands_has_no_place() -> None:
    assert high_pressure_sums(tile(4, 3, 72)) == {"acc"}  # 12 sums, 3 and 1 operands, 16 registers
    assert high_pressure_sums(tile(6, 2, 72)) == {"acc"}
    assert not high_pressure_sums(tile(2, 2, 64))  # 4 sums, 2 and 1 operands


@pytest.mark.slow
def test_sums_are_said_to_be_in_order_where_they_are_crowded() -> None:
    assert "in_order(acc[ir][jr]);" in print_c(tile(4, 3, 72)).source
    assert "in_order" not in print_c(tile(2, 2, 64)).source


@pytest.mark.slow
def test_rounds_are_apart_where_a_window_slides() -> None:
    text = print_c(window()).source
    assert re.search(r"^#pragma GCC unroll 1\n *for .*\n( *#.*\n)* *next_round\(\);", text, re.MULTILINE)
    assert "next_round" not in print_c(tile(4, 3, 72)).source
    assert "next_round" not in print_c(bytes_tile()).source


@cache
def residual() -> Kernel:
    """A convolution to which a bias and an image are added, in tiles of six pixels and two vectors of channels."""
    sizes = {"h": 13, "w": 13, "ci": 8, "co": 32, "kh": 3, "kw": 3, "pad": 1, "residual": 1}
    wanted = {"reg_y": 1, "reg_x": 6, "reg_o": 2, "unroll": 2, "inner": "rows"}
    return scheduled(workload("conv2d_bias_relu", **sizes), "x86/vfmadd.f32.ymm", wanted)


@cache
def taps() -> Kernel:
    """A convolution of 3x3 with channels first in tiles of five pixels and two vectors of channels, a line unrolled."""
    sizes = {"h": 14, "w": 14, "ci": 64, "co": 32, "kh": 3, "kw": 3, "pad": 1, "layout": "nchw"}
    wanted = {"reg_y": 1, "reg_x": 5, "reg_o": 2, "block_c": 32, "unroll": 3, "loads": "each", "pack_b": "panel"}
    wanted |= {"inner": "rows", "pack_a": "padded", "edges": "checked", "prefetch_out": "yes"}
    return scheduled(workload("conv2d", **sizes), "x86/vfmadd.f32.ymm", wanted)


@cache
def activated() -> Kernel:
    """A product with GELU in tiles of 4x2, two steps of the depth a round."""
    wanted = {"reg_i": 4, "reg_j": 2, "block_i": 0, "block_p": 0, "pack_b": "panel", "unroll": 2, "inner": "rows"}
    return scheduled(workload("matmul_bias_gelu", m=32, n=64, k=24), "x86/vfmadd.f32.ymm", wanted)


def test_what_sums_are_combined_with_is_loaded_when_they_are_finished() -> None:
    text = print_c(residual()).source
    body = text[text.index("acc[0][xr][or_] = (__m256){0};") :]
    assert re.search(r"\}\n +sums_done\(\);\n#pragma GCC unroll \d\n +for .*\n(.*\n){1,3} +store_f32x8\(&Y_at", body)
    assert "sums_done" not in print_c(tile(4, 3, 72)).source


@pytest.mark.sampled(1)
@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
@pytest.mark.parametrize("n", [72, 71])
def test_sums_stay_in_registers(compiler: list[str], n: int, tmp_path: Path) -> None:
    assert_no_spills(tile(4, 3, n), compiler, tmp_path)


@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
def test_products_of_bytes_are_not_added_to_each_other_first(compiler: list[str], tmp_path: Path) -> None:
    assert_no_spills(bytes_tile(), compiler, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
def test_what_a_window_loads_is_not_kept_for_its_next_step(compiler: list[str], tmp_path: Path) -> None:
    assert_no_spills(window(), compiler, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
def test_unrolled_steps_of_a_window_share_no_loads(compiler: list[str], tmp_path: Path) -> None:
    assert_no_spills(taps(), compiler, tmp_path)


@pytest.mark.skipif("gcc" not in NAMES, reason="no gcc on this machine")
def test_what_sums_are_combined_with_takes_no_registers_from_them(tmp_path: Path) -> None:
    """GCC 12 kept the bias in registers, and sums on the stack: 18 loads and stores of them, and 10 for the edges."""
    lines = machine_code(residual(), ["gcc"], tmp_path).splitlines()
    assert sum(bool(STACK.search(line)) for line in lines) <= 12


@pytest.mark.skipif("gcc" not in NAMES, reason="no gcc on this machine")
def test_sums_are_not_copied_between_registers(tmp_path: Path) -> None:
    """GCC 12 took operands of the second step early, and copied four sums to make room."""
    loops = [lines_of_loop(b) for b in blocks(machine_code(activated(), ["gcc"], tmp_path)) if INSTRUCTION.search(b)]
    assert loops
    assert not [line for loop in loops for line in loop if re.search(r"vmov\w+\s+%ymm\d+, %ymm", line)]


STACK = re.compile(r"ymm.*\(%rsp\)|\(%rsp\).*ymm")


def assert_no_spills(kernel: Kernel, compiler: list[str], folder: Path) -> None:
    """That the compiler takes it without warnings, and keeps no vector on the stack in a loop of instructions."""
    inner = [lines_of_loop(b) for b in blocks(machine_code(kernel, compiler, folder)) if INSTRUCTION.search(b)]
    assert inner
    for loop in inner:
        assert not [line for line in loop if STACK.search(line)], "\n".join(loop)


def machine_code(kernel: Kernel, compiler: list[str], folder: Path) -> str:
    """What the compiler makes of the exported kernel, without warnings of the kernel's text."""
    code = print_c(kernel)
    (folder / f"{code.name}.h").write_text(code.header)
    (folder / f"{code.name}.c").write_text(code.source)
    command = [*compiler, *code.flags.split(), *STRICT, "-S", "-g0", "-fomit-frame-pointer"]
    done = subprocess.run(
        [*command, f"{code.name}.c", "-o", "out.s"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return (folder / "out.s").read_text()


def blocks(text: str) -> list[str]:
    return re.split(r"^\.?L\w*:", text, flags=re.MULTILINE)


def lines_of_loop(block: str) -> list[str]:
    """The lines up to the last multiply-add: behind it sums are stored."""
    lines = block.splitlines()
    last = max(at for at, line in enumerate(lines) if INSTRUCTION.search(line))
    return lines[: last + 3]
