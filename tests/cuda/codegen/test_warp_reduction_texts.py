"""Texts of `redux.sync`: single registers stand bare in them, and the assembler takes them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.cards.nvrtc import needs_nvrtc

from autosched.codegen.cuda.emission import device_function
from autosched.codegen.cuda.export.files import export_cuda
from autosched.codegen.lower import lower
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.errors import SpecError
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text
from autosched.tiling.planner.plan_program import plan_program

H200 = load_target("nvidia-h200")
ROWS = """
def rows(A: s32[64, 128], S: s32[64]):
    for i in range(64):
        S[i] = 0
        for k in range(128):
            S[i] += A[i, k]
"""


@pytest.mark.parametrize("name", ["add.s32", "add.u32", "max.s32", "max.u32", "min.s32", "min.u32", "and.u32", "or.u32",
                                  "xor.u32"])  # fmt: skip
def test_a_kernel_with_the_text_compiles(name: str) -> None:
    """The text of each in the place of the sum's."""
    needs_nvrtc("sm_90a")
    catalogue = Catalogue.builtin()
    plans = plan_program(parse(ROWS), H200, catalogue, [catalogue["cuda/redux.sync.add.s32"]]).plans
    plan = next(p for p in plans if p.tensor_parts)
    (row,) = plan.space.sample(1, np.random.default_rng(0))
    source = export_cuda(lower(plan, plan.space.schedule(int(row))), H200).source.split("// Launchers.")[0]
    assembly = re.compile(r'asm volatile\("[^"]*redux[^"]*"')
    (text,) = assembly.findall(device_function(catalogue[f"cuda/redux.sync.{name}"], lambda _: None))
    assert "%0, %0, all" in text
    assert compile_cuda(assembly.sub(lambda _: text, source), "sm_90a").kernels


def test_a_register_that_an_operand_does_not_have_is_refused() -> None:
    text = """
isa: cuda
intrinsics:
  - name: sum
    scope: warp
    semantics: |
      def f(a: s32[32], c: s32[1]):
          for t in range(32):
              c[0] += a[t]
    operands:
      a: {registers: 1 x b32, fragment: ["t"]}
      c: {registers: 1 x b32, fragment: ["0"], copies: 32}
    emit: "redux.sync.add.u32 {c.0}, {a.1}, 0xffffffff;"
"""
    with pytest.raises(SpecError, match=r"\{a\.1\}: a has no register 1 \(1 x b32\)"):
        load_text(text, "sum.yaml")
    assert load_text(text.replace("a.1", "a.0"), "sum.yaml")
