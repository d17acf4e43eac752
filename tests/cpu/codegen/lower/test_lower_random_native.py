"""Random programs as machine code and as exported C: both agree with the oracle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import Expected, expect
from support.match.examples import examples
from support.plans import leading, plans_of, this_machine
from support.programs.lower_programs import lowered_texts, triangular_texts

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.errors import AutoschedError
from autosched.ir import parse
from autosched.machine.host import host_features

HERE = this_machine()


def each_kernel(count: int, visit: Callable[[Kernel, Expected], None]) -> None:
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
            visit(lower(plan, schedule), expected)

    run()


@pytest.mark.slow
@pytest.mark.x86
def test_machine_code() -> None:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    each_kernel(20, lambda kernel, expected: check_machine_code([kernel], expected))


@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    made: list[tuple[Kernel, Expected]] = []
    each_kernel(8, lambda kernel, expected: made.append((kernel, expected)))
    check_exported_c([m for m in made if not missing_features(m[0])], tmp_path, "-fopenmp")
