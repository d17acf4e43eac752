"""Built kernels as objects: what they print, pickle and refuse."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pytest

import autosched
from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.errors import UsageError
from autosched.ir import parse
from autosched.machine.detect import detect
from autosched.search.tuning.baseline import literal_plan
from autosched.search.tuning.study import Best
from autosched.store.records import Measurement, Trial
from autosched.tiling.candidate import Candidate

TEXT = "def add(A: f32[n], B: const[f32[n]], Y: f32[n], *, n=8):\n    for i in range(n):\n        Y[i] = A[i] + B[i]"
A, B = np.arange(8, dtype=np.float32), np.full(8, 2, np.float32)


@cache
def kernel() -> CompiledKernel:
    plan = literal_plan(parse(TEXT), detect())
    lowered = lower(plan, plan.space.schedule(0))
    return CompiledKernel(lowered, load(print_llvm(lowered)), "native")


def test_a_kernel_is_told_in_a_line() -> None:
    told = repr(kernel())
    assert told == str(kernel()) != kernel().source
    assert "add(A: f32[8], B: const[f32[8]], Y: f32[8]) for native" in told
    assert len(told.splitlines()) == 1
    assert len(repr(kernel().kernel)) < 200
    assert len(repr(kernel().prepack(B=B)).splitlines()) == 1


def test_the_best_of_a_study_is_told_in_two_lines() -> None:
    plan = literal_plan(parse(TEXT), detect())
    schedule = plan.space.schedule(0)
    trial = Trial(3, plan.name, 0, schedule.named, Measurement("ok", 1.5e-6))
    told = repr(Best(trial, Candidate(plan, 0)))
    assert "trial 3: 1.5e-06 s" in told
    assert len(told.splitlines()) == 2


def test_an_answer_is_told_in_a_line() -> None:
    told = repr(autosched.match(autosched.workload("matmul", a="u8", b="s8"), "x86/vpdpbusd.zmm"))
    assert told == "<Match x86/vpdpbusd.zmm for stage C: match, mappings: 3>"


def test_a_kernel_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(kernel()))
    assert np.array_equal(again(A, B), A + B)
    assert again.source == kernel().source
    bound = pickle.loads(pickle.dumps(kernel().prepack(B=B)))
    assert np.array_equal(bound(A), A + B)


def test_bound_constants_are_the_kernel_s_own() -> None:
    given = B.copy()
    bound = kernel().prepack(B=given)
    given[:] = 100
    assert np.array_equal(bound(A), A + B)
    assert np.array_equal(pickle.loads(pickle.dumps(bound))(A), A + B)
    bound(A, Y=given)
    assert np.array_equal(given, A + B)


def test_code_for_another_processor_is_refused() -> None:
    again, (made, objects, target, _) = kernel().__reduce__()
    with pytest.raises(UsageError, match="was built for z80, and this processor is"):
        again(made, objects, target, ("z80", ""))


def test_constants_are_bound_once() -> None:
    bound = kernel().prepack(B=B)
    assert bound.source == kernel().source
    with pytest.raises(UsageError, match="bound already: B"):
        bound.prepack(B=B)
