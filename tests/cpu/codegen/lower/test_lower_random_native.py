"""Random programs as machine code and as exported C: both agree with the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given
from support.compiled.c_build import build, call, missing_features, needs_compiler
from support.match.agreement import Expected, expect
from support.match.examples import examples
from support.plans import leading, plans_of, this_machine
from support.programs.lower_programs import lowered_texts, triangular_texts

from autosched.codegen.c import print_c
from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.errors import AutoschedError
from autosched.ir import parse
from autosched.machine.host import host_features

HERE = this_machine()


def each_kernel(count: int, visit: Callable[[str, Kernel, Expected], None]) -> None:
    """Visits a random row's kernel of the first plan of `count` random programs."""

    @examples(count, phases=[Phase.generate])
    @given(lowered_texts(600) | triangular_texts())
    def run(text: str) -> None:
        try:
            program = parse(text, filename="f.py")
        except AutoschedError:
            return
        expected = expect(program)
        for plan in leading(plans_of(program, HERE, threads=2), 1):
            schedule = plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(len(text)))[0]))
            visit(f"{text}{plan.name}\n{schedule}", lower(plan, schedule), expected)

    run()


@pytest.mark.slow
@pytest.mark.x86
def test_machine_code() -> None:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")

    def agrees(title: str, kernel: Kernel, expected: Expected) -> None:
        program = kernel.program
        compiled = CompiledKernel(kernel, load(compile_object(print_llvm(kernel))))
        found = compiled(**{n: v.copy() for n, v in (expected.arrays | expected.scalars).items()})
        outputs = found if isinstance(found, tuple) else (found,)
        wrong = expected.difference(dict(zip(program.outputs, outputs, strict=True)))
        assert wrong is None, f"{title}\n{wrong}"

    each_kernel(20, agrees)


@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    made: list[tuple[str, Kernel, Expected]] = []

    def keep(title: str, kernel: Kernel, expected: Expected) -> None:
        if not missing_features(kernel):
            made.append((title, replace(kernel, name=f"f{len(made)}"), expected))

    each_kernel(8, keep)
    library = build([print_c(kernel) for _, kernel, _ in made], tmp_path, "-O1", "-fopenmp")
    for title, kernel, expected in made:
        wrong = expected.difference(call(library, kernel, expected.arrays, expected.scalars))
        assert wrong is None, f"{title}\n{wrong}"
