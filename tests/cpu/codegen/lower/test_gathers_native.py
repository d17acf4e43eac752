"""Reads at indices from data as machine code and as exported C: in lanes, the same for several lanes, and under
conditions that keep an index inside its tensor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fuzz.gathers import GUARDED_READS, guarded_far_away, guarded_read, random_gather
from hypothesis import given
from hypothesis import strategies as st
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code, compiled
from support.match.agreement import Expected, expect
from support.match.examples import examples
from support.plans import plans_of, this_machine

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.codegen.tree.update import guarded
from autosched.ir import parse, run
from autosched.ir.program import Program
from autosched.ir.value import Select

SAME_IN_LANES = """
def f(X: f32[33, 17], V: f32[40], I: s32[2], Y: f32[33, 17]):
    assume(0 <= I <= 39)
    for p, j in grid(33, 17):
        Y[p, j] = V[I[j // 16]] * X[p, j]
"""


def kernels(program: Program, count: int, seed: int = 0) -> list[Kernel]:
    made = []
    for plan in plans_of(program, this_machine()):
        ids = plan.space.sample(count, np.random.default_rng(seed))
        made += [lower(plan, plan.space.schedule(int(row))) for row in ids]
    return made


@pytest.mark.x86
def test_an_element_that_is_the_same_in_all_lanes() -> None:
    program = parse(SAME_IN_LANES, filename="f.py")
    check_machine_code(kernels(program, 12), expect(program))


@pytest.mark.x86
@examples(4)
@given(st.integers(0, 10**6))
def test_machine_code(seed: int) -> None:
    program = random_gather(seed)
    check_machine_code(kernels(program, 3, seed), expect(program, seed))


@pytest.mark.slow
@pytest.mark.x86
@examples(150)
@given(st.integers(0, 10**6))
def test_machine_code_of_many(seed: int) -> None:
    program = random_gather(seed)
    check_machine_code(kernels(program, 4, seed), expect(program, seed))


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    made = [(k, expect(p)) for p in map(random_gather, range(8)) for k in kernels(p, 1)]
    check_exported_c([m for m in made if not missing_features(m[0])], tmp_path)


def test_the_first_condition_is_asked_first() -> None:
    program, _ = guarded_far_away()
    (stage,) = program.stages
    value = guarded(stage.guards, stage.assign.value, stage.target)
    assert isinstance(value, Select)
    assert value.condition == stage.guards[0]


@pytest.mark.x86
def test_what_a_condition_rules_out_is_not_read() -> None:
    program, data = guarded_far_away()
    expected = run(program, data)
    for kernel in kernels(program, 12):
        assert np.array_equal(compiled(kernel)(**data), expected["Y"])


@pytest.mark.x86
@pytest.mark.parametrize("name", GUARDED_READS)
def test_machine_code_reads_only_what_is_wanted(name: str) -> None:
    program, data = guarded_read(name)
    expected = run(program, data)
    for kernel in kernels(program, 8):
        given = {n: a.copy() for n, a in data.items()}
        np.testing.assert_array_equal(compiled(kernel)(**given), expected["Y"])


@pytest.mark.sampled(4)
@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize("name", GUARDED_READS)
def test_exported_c_reads_only_what_is_wanted(name: str, tmp_path: Path) -> None:
    """A read that goes far astray ends the process: an element that all lanes share was read though none wanted it."""
    program, data = guarded_read(name)
    wanted = run(program, data)
    expected = Expected(data, {}, wanted, dict.fromkeys(wanted, 0.0))
    made = [k for k in kernels(program, 8) if not missing_features(k)]
    check_exported_c([(k, expected) for k in made], tmp_path)
