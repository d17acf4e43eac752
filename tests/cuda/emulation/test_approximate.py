"""Powers of two of pairs of 16-bit floats, which a GPU's special-function unit approximates: plans at `real`, in the
loop-tree interpreter, on the emulated card and as machine code."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.cards.hand_kernels import needs_compiler
from support.cards.nvrtc import needs_disassembler, needs_nvrtc
from support.match.computes import CATALOGUE

from autosched.codegen.cuda import print_cuda
from autosched.codegen.cuda.emulation import Unit, build
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.device.correctness.oracle import Oracle, compute, slack
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.device.cuda.compile.sass import instructions_of
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.variants.conditional import candidates_of

H200 = dataclasses.replace(load_target("nvidia-h200"), cores=3)
MEMBERS = sorted(n for n in CATALOGUE if CATALOGUE[n].path.endswith("cuda/approximate.yaml"))


def made(name: str) -> tuple[Kernel, Oracle]:
    t = CATALOGUE[name].accumulator.dtype
    text = f"def f(A: {t}[9, 71], C: {t}[9, 71]):\n for y, i in grid(9, 71):\n"
    program = parse(text + f"  C[y, i] = {t}(exp(f32(A[y, i]) * 0.6931471805599453))\n")
    found = match(program, usable(CATALOGUE, H200, "simulator", [name]), "real")
    assert [m.verdict for m in match(program, [CATALOGUE[name]])] == ["no"]
    plan = next(p for p in make_plans(program, H200, candidates_of(found), 1) if p.tensor_parts)
    kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(0))[0])))
    assert {i.name for i in kernel.intrinsics} == {name}
    return kernel, compute(program, 0, slack=slack(plan))


def agrees(got: object, oracle: Oracle, share: float) -> None:
    want, allowed = (np.asarray(x["C"]).astype(np.float64) for x in (oracle.wants, oracle.tolerances))
    assert (np.abs(np.asarray(got).astype(np.float64) - want) <= allowed).all()
    assert (allowed > share * np.abs(want)).all()


@pytest.mark.parametrize("name", MEMBERS)
def test_the_interpreter_computes_it(name: str) -> None:
    kernel, oracle = made(name)
    share = CATALOGUE[name].numerics.relative
    assert share is not None
    agrees(run_kernel(kernel, oracle.inputs)["C"], oracle, share)


@needs_compiler
@pytest.mark.compiler
def test_the_emulated_card_computes_it() -> None:
    cases = [made(name) for name in MEMBERS]
    sources = [print_cuda(kernel, H200) for kernel, _ in cases]
    units = [
        Unit(s.text, f"a{n}.cu", s.intrinsics, s.plan, kernel.program)
        for n, (s, (kernel, _)) in enumerate(zip(sources, cases, strict=True))
    ]
    for ready, (_, oracle) in zip(build(units), cases, strict=True):
        agrees(ready.run(dict(oracle.inputs), {})["C"], oracle, 2.0**-10)


@pytest.mark.parametrize("name", MEMBERS)
def test_it_is_one_operation_of_the_special_function_unit(name: str) -> None:
    kernel, _ = made(name)
    source = print_cuda(kernel, H200)
    needs_nvrtc(source.arch)
    found = compile_cuda(source.text, source.arch, source.headers)
    needs_disassembler()
    assert any(op.startswith("MUFU") for op in instructions_of(found.code, source.arch)), source.text
