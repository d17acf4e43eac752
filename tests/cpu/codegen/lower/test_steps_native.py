"""Instructions of several steps, and programs that say in several statements what one instruction does: in the
loop-tree interpreter, machine code and exported C, and each of the catalogue's on this CPU against numpy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from fuzz.stepwise import in_steps
from fuzz.written import random_program
from hypothesis import given
from hypothesis import strategies as st
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code, compiled
from support.compiled.one_row import agrees, one_row
from support.match.agreement import disagreement, expect
from support.match.computes import CATALOGUE
from support.match.examples import examples
from support.plans import machine, this_machine

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse, run
from autosched.ir.program import Program
from autosched.machine.host import host_features
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan

AVX512BW = machine(frozenset(["avx2", "fma", "avx512f", "avx512vl", "avx512bw"]))
STEPS = sorted(n for n in CATALOGUE if CATALOGUE[n].path.endswith("fixed_point.yaml"))


def stepwise(seed: int, most: int = 700) -> Program:
    return parse(in_steps(str(random_program(seed, most)), Random(f"steps {seed}")))


def taken_in(program: Program, target: Target) -> list[Plan]:
    """The plans of an instruction that computes several of the program's stages."""
    found = plan_program(program, target, CATALOGUE, usable(CATALOGUE, target, "cpu")).every
    return [p for p in found if "inline" in p.name and p.tensor_parts]


def _interpreted(seed: int) -> bool:
    program, rng = stepwise(seed), np.random.default_rng(seed)
    plans = taken_in(program, AVX512BW)
    expected = expect(program, seed) if plans else None
    for n in rng.permutation(len(plans))[:2]:
        assert expected is not None
        assert disagreement(plans[n], map(int, plans[n].space.sample(1, rng)), expected) is None
    return bool(plans)


def test_the_interpreter_computes_the_program() -> None:
    assert all(map(_interpreted, (0, 10)))


@pytest.mark.slow
@examples(100)
@given(st.integers(0, 10**6))
def test_the_interpreter_computes_many_programs(seed: int) -> None:
    _interpreted(seed)


def kernels(seed: int) -> tuple[Program, list[Kernel]]:
    program, rng = stepwise(seed), np.random.default_rng(seed)
    plans = taken_in(program, this_machine())
    chosen = [plans[n] for n in rng.permutation(len(plans))[:2]]
    return program, [lower(p, p.space.schedule(int(row))) for p in chosen for row in p.space.sample(1, rng)]


@pytest.mark.x86
@pytest.mark.parametrize("seeds", [(0, 10), pytest.param(range(100), marks=pytest.mark.slow)], ids=["few", "many"])
def test_machine_code(seeds: Sequence[int]) -> None:
    for seed in seeds:
        program, made = kernels(seed)
        if made:
            check_machine_code(made, expect(program, seed))


@needs_compiler
@pytest.mark.x86
@pytest.mark.compiler
@pytest.mark.slow
def test_exported_c(tmp_path: Path) -> None:
    made = [(k, expect(p, s)) for s in range(60) for p, found in [kernels(s)] for k in found]
    check_exported_c([m for m in made if not missing_features(m[0])], tmp_path)


@needs_compiler
@pytest.mark.x86
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STEPS)
def test_each_on_this_cpu_against_numpy(name: str, tmp_path: Path) -> None:
    kernel, arrays = one_row(name)
    bits, into = (31, np.int32) if ".q31" in name else (15, np.int16)
    exact = arrays["a"].astype(object) * arrays["b"].astype(object)
    rounded = [(int(v) + (1 << (bits - 1))) >> bits for v in exact]
    kind = np.iinfo(CATALOGUE[name].accumulator.dtype.numpy)
    if "q31s" not in name:  # only the product of two least numbers leaves the type
        rounded = [int(np.int64(v).astype(into)) for v in rounded]
    wanted = np.array([min(max(v, kind.min), kind.max) for v in rounded], kind.dtype)
    agrees(kernel, arrays, wanted, tmp_path)


AVERAGE = """
def f(A: u8[65536], B: u8[65536], C: u8[65536]):
    S: u16[65536]
    T: u16[65536]
    for i in range(65536):
        S[i] = u16(A[i]) + u16(B[i])
    for i in range(65536):
        T[i] = S[i] + 1
    for i in range(65536):
        C[i] = u8(T[i] >> 1)
"""


@pytest.mark.x86
def test_all_pairs_of_bytes() -> None:
    """An average in three stages on one instruction, against sums in Python's own integers."""
    if missing := {"avx512bw"} - host_features():
        pytest.skip(f"this machine lacks {', '.join(missing)}")
    plans = taken_in(parse(AVERAGE), this_machine())
    plan = next(p for p in plans if {t.nest.intrinsic.name for t in p.tensor_parts} == {"x86/vpavgb.zmm"})
    kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(0))[0])))
    a, b = (np.ascontiguousarray(x.reshape(-1).astype(np.uint8)) for x in np.meshgrid(range(256), range(256)))
    found = compiled(kernel)(A=a, B=b)
    np.testing.assert_array_equal(found, np.array([(int(x) + int(y) + 1) >> 1 for x, y in zip(a, b, strict=True)]))


def test_what_others_read_stays() -> None:
    """An intermediate that another stage reads, too, is computed for that one."""
    text = """
def f(A: s16[70], B: s16[70], C: s16[70], D: s32[70]):
    T: s32[70]
    for i in range(70):
        T[i] = s32(A[i]) * s32(B[i])
    for i in range(70):
        C[i] = s16((T[i] + 16384) >> 15)
    for i in range(70):
        D[i] = T[i] ^ 5
"""
    program = parse(text)
    plans = taken_in(program, AVX512BW)
    assert plans
    rng = np.random.default_rng(0)
    arrays = {n: rng.integers(-32768, 32767, 70, np.int16) for n in "AB"}
    assert (run(program, arrays)["D"] == (arrays["A"].astype(np.int64) * arrays["B"]) ^ 5).all()
    for plan in plans:
        assert "T" in {s.name for s in plan.program.stages}
        assert disagreement(plan, map(int, plan.space.sample(1, rng))) is None
