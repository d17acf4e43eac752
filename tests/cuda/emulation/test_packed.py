"""Instructions on two numbers of 16 bits in a thread's register: random elementwise programs (`tests/fuzz/written.py`)
in the loop-tree interpreter and on the emulated card, and each of the catalogue's as machine code."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from fuzz.written import packed_program
from hypothesis import given
from hypothesis import strategies as st
from support.cards.hand_kernels import needs_compiler
from support.cards.nvrtc import needs_disassembler, needs_nvrtc
from support.match.agreement import disagreement, expect
from support.match.computes import CATALOGUE
from support.match.examples import examples

from autosched.codegen.cuda import CudaSource, print_cuda
from autosched.codegen.cuda.emulation import Unit, build
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.costmodel.analytic.clock import clock
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.device.cuda.compile.sass import instructions_of
from autosched.errors import SpecError
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.load import load_text
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.conditional import candidates_of

H200 = dataclasses.replace(load_target("nvidia-h200"), cores=3)
A100 = load_target("nvidia-a100")
MEMBERS = sorted(n for n in CATALOGUE if CATALOGUE[n].path.endswith("cuda/packed.yaml"))


def written(program: Program, target: Target = H200, only: str = "cuda/*x2*") -> list[Plan]:
    """The plans with an instruction that overwrites its target."""
    found = match(program, usable(CATALOGUE, target, "simulator", [only]))
    plans = make_plans(program, target, candidates_of(found), 1)
    return [p for p in plans if any(not t.nest.intrinsic.accumulates for t in p.tensor_parts)]


def some(seed: int, most: int, plans: int) -> list[tuple[Plan, int]]:
    """Plans of a random program, each with a row."""
    rng, found = np.random.default_rng(seed), written(packed_program(seed, most))
    return [(found[n], int(found[n].space.sample(1, rng)[0])) for n in rng.permutation(len(found))[:plans]]


@examples(8)
@given(st.integers(0, 10**6))
def test_the_interpreter_computes_the_program(seed: int) -> None:
    _interpreted(seed)


@pytest.mark.slow
@examples(80)
@given(st.integers(0, 10**6))
def test_the_interpreter_computes_many_programs(seed: int) -> None:
    _interpreted(seed)


def _interpreted(seed: int) -> None:
    for plan, row in some(seed, 700, 2):
        assert disagreement(plan, [row], expect(plan.program, seed)) is None


@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 60), marks=pytest.mark.slow)], ids=str)
def test_the_emulated_card_computes_the_program(seeds: range) -> None:
    units, expected = [], []
    for seed in seeds:
        for plan, row in some(seed, 700, 1):
            source = print_cuda(kernel := lower(plan, plan.space.schedule(row)), H200)
            units.append(Unit(source.text, f"k{seed}.cu", source.intrinsics, source.plan, kernel.program))
            expected.append(expect(plan.program, seed))
    assert units
    for wanted, made in zip(expected, build(units), strict=True):
        assert wanted.difference(made.run(wanted.arrays, wanted.scalars)) is None


def kernel_of(name: str, target: Target) -> Kernel:
    """A kernel of the instruction on rows that end within a register."""
    intrinsic = CATALOGUE[name]
    if name.endswith(".sum"):
        t = intrinsic.accumulator.dtype
        text = f"def f(A: {t}[8, 6], B: {t}[6, 33], C: {t}[8, 33]):\n for i, j in grid(8, 33):\n  C[i, j] = 0\n"
        text += "  for k in range(6):\n   C[i, j] += A[i, k] * B[k, j]\n"
    else:
        term = next(line for line in str(intrinsic.program).splitlines() if "c[i] =" in line).strip()
        operands = ", ".join(f"{o.name}: {o.dtype}[9, 71]" for o in intrinsic.operands.values())
        text = f"def f({operands}):\n for y, i in grid(9, 71):\n  {term.replace('[i]', '[y, i]')}\n"
    program = parse(text)
    found = candidates_of(match(program, usable(CATALOGUE, target, "simulator", [name])))
    plan = next(p for p in make_plans(program, target, found, 1) if p.tensor_parts)
    kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(0))[0])))
    assert {i.name for i in kernel.intrinsics} == {name}
    return kernel


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("target", [A100, H200], ids=lambda t: t.name)
def test_each_is_an_operation_of_the_machine(name: str, target: Target) -> None:
    if not CATALOGUE[name].requires <= target.features:
        pytest.skip("the target lacks it")
    source = print_cuda(kernel_of(name, target), target)
    needs_nvrtc(source.arch)
    found = compile_cuda(source.text, source.arch, source.headers)
    assert not next(iter(found.kernels.values())).spills
    needs_disassembler()
    assert packed(instructions_of(found.code, source.arch)), source.text


def packed(found: dict[str, int]) -> int:
    """Operations on pairs of halves or of words."""
    names = ("HADD2", "HMUL2", "HFMA2", "HMNMX2", "VIMNMX", "VIADD")
    return sum(count for name, count in found.items() if name.startswith(names))


def test_every_one_has_its_types() -> None:
    """A family's members by operation, for both floats of 16 bits."""
    for op in ("add", "sub", "mul", "max", "min", "abs", "neg", "fma", "fma.relu"):
        assert {f"cuda/{op}.f16x2", f"cuda/{op}.bf16x2"} <= set(MEMBERS)
    assert {f"cuda/{op}.{x}x2" for op in ("add", "max", "min") for x in ("s16", "u16")} <= set(MEMBERS)
    assert {"cuda/fma.f16x2.sum", "cuda/fma.bf16x2.sum"} <= set(MEMBERS)


def test_what_is_overwritten_is_no_operand_of_the_text() -> None:
    source = _printed("cuda/add.f16x2")
    assert '"=r"(c[0])' in source.text
    assert '"=&r"(c[0])' in _printed("cuda/add.bf16x2").text  # several instructions: an input is read after a write
    assert '"+r"(c[0])' in _printed("cuda/fma.f16x2.sum").text


def _printed(name: str) -> CudaSource:
    return print_cuda(kernel_of(name, H200), H200)


def test_threads_compete() -> None:
    """Plans on the instruction, and one in which threads compute the stage by themselves."""
    program = parse("def f(A: f16[64, 70], C: f16[64, 70]):\n for i, j in grid(64, 70):\n  C[i, j] = abs(A[i, j])\n")
    found = candidates_of(match(program, usable(CATALOGUE, H200, "simulator", ["cuda/*x2*"])))
    plans = make_plans(program, H200, found, 1)
    assert any(p.tensor_parts for p in plans)
    assert any(not p.tensor_parts for p in plans)


def test_the_clock_knows_what_memory_takes() -> None:
    """No row is timed below the bytes that it moves."""
    text = "def f(A: f16[n, n], C: f16[n, n], *, n=2048):\n for i, j in grid(n, n):\n  C[i, j] = abs(A[i, j])\n"
    program = parse(text)
    plan = next(p for p in written(program, load_target("nvidia-h200")) if p.tensor_parts)
    rows = plan.space.sample(200, np.random.default_rng(0))
    least = 2 * 2 * 2048**2 / plan.target.memories[-1].bandwidth_bytes_per_s
    assert clock(plan, plan.space.values(rows))["total"].min() > least


def test_a_text_that_does_not_write_the_target_is_refused() -> None:
    text = """
isa: cuda
intrinsics:
  - name: add.f16x2
    semantics: |
      def add(a: f16[2], b: f16[2], c: f16[2]):
          for i in range(2):
              c[i] = a[i] + b[i]
    emit: "{}"
"""
    assert load_text(text.replace("{}", "add.rn.f16x2 {c}, {a}, {b};"))
    with pytest.raises(SpecError, match=r"the operand \{c\} is not used"):
        load_text(text.replace("{}", "add.rn.f16x2 {a}, {b};"))
