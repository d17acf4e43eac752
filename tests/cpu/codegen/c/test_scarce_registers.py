"""Where vectors have sixteen registers: constants of formulas are operands from memory, and the stack is aligned."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cpu.codegen.c.test_register_pressure import COMPILERS, STRICT
from support.compiled.c_build import build, call, missing_features, needs_compiler
from support.compiled.native import compiled
from support.match.agreement import expect
from support.plans import machine
from support.programs.scalar_programs import scalar_plans

from autosched.codegen.c import print_c
from autosched.codegen.llvm.machine.compile import assembly
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.codegen.passes.memory_constants import memory_constants, scarce
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import workload
from autosched.ir.formula import Formula
from autosched.machine.host import host_features
from autosched.machine.target import Target

AVX2 = machine(frozenset(["avx2", "fma"]), registers=16, vector_bytes=32)
ZEN_3 = {"cpu": "znver3", "triple": "x86_64-unknown-linux-gnu"}
SOFTMAX = {"M.vector": 16, "M.unroll": 2, "M.rows": 1, "M.threads": 1}


def rows(target: Target = AVX2, threads: int = 1, **wanted: object) -> Kernel:
    """A softmax of rows of 100 in vectors of sixteen, two a round, with exponentials in vectors."""
    plan = scalar_plans(workload("softmax", m=5, n=100), target, threads)[0]
    asked = SOFTMAX | {"M.threads": threads, "M.math": "vector"} | wanted
    found = (plan.space.schedule(int(row)) for row in plan.space.enumerate().ids)
    return lower(plan, next(s for s in found if asked.items() <= s.named.items()))


@cache
def softmax() -> Kernel:
    return rows()


def exponential() -> Formula:
    (found,) = softmax().formulas.values()
    return found


def test_addends_and_sides_of_comparisons_that_stand_once_need_no_register() -> None:
    numbers = {round(float(c.value), 3) for c in memory_constants(exponential())}
    assert numbers == {1.0, 0.5, 0.167, 0.042, 88.723, -87.337, float("inf")}
    assert len(memory_constants(exponential())) == 8  # 1.0 by two names: 0.9999997 is one of them


def test_factors_and_what_stands_twice_keep_a_register() -> None:
    numbers = {float(c.value) for c in memory_constants(exponential())}
    assert not numbers & {12582912.0, -0.693359375, 0.008289513178169727}


def test_registers_are_scarce_before_avx512() -> None:
    assert scarce(softmax())
    assert not scarce(rows(machine()))


def test_constants_are_operands_of_machine_code() -> None:
    text = assembly(print_llvm(softmax()), **ZEN_3)
    assert len(re.findall(r"vfmadd\w+\s+\.?L?number\.\d+\S*\(%rip\)", text)) >= 8, text
    assert ".number" not in assembly(print_llvm(rows(machine())), "znver4", triple=ZEN_3["triple"])


def test_vectors_on_the_stack_are_aligned() -> None:
    text = assembly(print_llvm(rows(**{"M.rows": 4})), **ZEN_3)
    assert re.search(r"ymm\d+, -?\d*\(%rsp\)", text), "nothing is kept on the stack"
    assert re.search(r"andq\s+\$-32, %rsp", text)


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
def test_exported_c_takes_constants_from_memory_and_aligns_the_stack(compiler: list[str], tmp_path: Path) -> None:
    text = _assembly_of_c(rows(**{"M.rows": 4}), compiler, tmp_path)
    assert len(re.findall(r"vfmadd\w+\s+(?!-?\d*\(%[re]sp\))[\w.+-]*\(%\w+\), %ymm", text)) >= 4, text
    if re.search(r"ymm\d+, -?\d*\(%rsp\)", text):
        assert re.search(r"andq\s+\$-(32|64), %rsp", text)


def _assembly_of_c(kernel: Kernel, compiler: list[str], folder: Path) -> str:
    code = print_c(kernel)
    (folder / f"{code.name}.h").write_text(code.header)
    (folder / f"{code.name}.c").write_text(code.source)
    command = [*compiler, *code.flags.split(), *STRICT, "-S", "-g0", "-fomit-frame-pointer"]
    done = subprocess.run(
        [*command, f"{code.name}.c", "-o", "out.s"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return (folder / "out.s").read_text()


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.compiler
@pytest.mark.x86
@pytest.mark.parametrize("threads", [1, 2])
def test_both_compute_what_the_program_says(threads: int, tmp_path: Path) -> None:
    kernel = rows(threads=threads)
    if missing_features(kernel) or "fma" not in host_features():
        pytest.skip("needs AVX2 and FMA")
    expected = expect(kernel.program)
    (output,) = kernel.program.outputs
    found = compiled(kernel)(**{n: v.copy() for n, v in expected.arrays.items()})
    assert expected.difference({output: found}) is None
    library = build([print_c(replace(kernel, name="softmax_rows"))], tmp_path, "-O2", "-fopenmp")
    exported = call(library, replace(kernel, name="softmax_rows"), expected.arrays, expected.scalars)
    np.testing.assert_array_equal(exported[output], found)


def test_threads_of_exported_c_align_their_stack_too() -> None:
    assert "-fopenmp -mstackrealign" in print_c(rows(threads=2)).flags
    assert "-mstackrealign" not in print_c(softmax()).flags
