"""A dtype is one row of the table in `ir/dtypes.py`: language, oracle, proofs and printers follow from its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle.interpreter import run
from autosched.machine.catalogue import load_target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tensorize.body.exact import holds

TEXT = """
def f(A: e4m3ieee[256], C: e4m3ieee[256], W: f32[256]):
    for i in range(256):
        C[i] = A[i] + A[i]
    for i in range(256):
        W[i] = f32(A[i])
"""
EVERY = np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e4m3)


@pytest.fixture(autouse=True)
def new(monkeypatch: pytest.MonkeyPatch) -> DType:
    """`e4m3ieee`, which has infinities and so is no dtype of the language: the row that would make it one."""
    row = DType("e4m3ieee", "float", 8, ml_dtypes.float8_e4m3, 3, 4)
    monkeypatch.setitem(DTYPES, row.name, row)
    return row


def kernel() -> Kernel:
    request = TuneRequest(parse(TEXT), load_target("intel-sapphire-rapids"), device="simulator")
    _, (plan, *_) = plans_of(request)
    return lower(plan, plan.space.schedule(0))


def check(found: Mapping[str, Any]) -> None:
    with np.errstate(all="ignore"):
        wide = EVERY.astype(np.float32)
        twice = (wide + wide).astype(ml_dtypes.float8_e4m3).astype(np.float32)
    assert np.array_equal(found["C"].astype(np.float32), twice, equal_nan=True)
    assert np.array_equal(found["W"].astype(np.float32), wide, equal_nan=True)


def test_the_language_and_both_interpreters_know_it() -> None:
    check(run(parse(TEXT), {"A": EVERY}))
    check(run_kernel(kernel(), {"A": EVERY}))


def test_proofs_know_what_it_holds(new: DType) -> None:
    assert (new.greatest, new.exponents) == (240.0, (-9, 7))
    assert all(holds(new, DTYPES[wide]) for wide in ("f16", "bf16", "f32"))
    assert not any(holds(new, DTYPES[other]) for other in ("e4m3", "e4m3fnuz", "e5m2", "e3m4"))


def test_it_prints() -> None:
    text = print_c(kernel()).source
    assert "narrow_float(x, 3, 7, 0x77u, 0x78u, 0x7cu)" in text
    assert "size > 0x78u ? 0x7fc00000u : size == 0x78u ? 0x7f800000u" in text
    assert "load_e4m3ieee(uint8_t bits)" in text
    assert "icmp uge i32" in print_llvm(kernel())
    assert " to i8" in print_llvm(kernel())
