"""Kernels on an instruction that reads what it overwrites: interpreter, machine code and exported C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import disagreement, expect
from support.plans import this_machine

from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text
from autosched.tiling.planner.plan_program import plan_program

TEXT = """
isa: x86
requires: [avx2]
header: immintrin.h
intrinsics:
  - name: less.ymm
    semantics: |
      def less(a: s16[16], c: s16[16]):
          for i in range(16):
              c[i] = sat_s16(s32(a[i]) - s32(c[i]))
    operands:
      a: {register: {llvm: <16 x i16>, c: __m256i}}
      c: {register: {llvm: <16 x i16>, c: __m256i}}
    emit:
      llvm: "call <16 x i16> @llvm.ssub.sat.v16i16(<16 x i16> {a}, <16 x i16> {c})"
      c: "_mm256_subs_epi16({a}, {c})"
    timing: {latency: 1, interval: 0.5}
"""


@needs_compiler
@pytest.mark.x86
@pytest.mark.compiler
@pytest.mark.parametrize("target", ["V", "W"])
def test_its_kernels_compute_the_program(target: str, tmp_path: Path) -> None:
    """In place, and where what is read is needed again."""
    stored = "        V[i] = sat_s16(s32(A[i]) - s32(V[i]))\n"
    if target == "W":
        stored = stored.replace("V[i] =", "W[i] =") + "    for i in range(75):\n        X[i] = V[i]\n"
    text = "def f(A: s16[75], V: s16[75], W: s16[75], X: s16[75]):\n    for i in range(75):\n" + stored
    program = parse(text)
    catalogue = Catalogue.builtin().with_intrinsics(load_text(TEXT, "less.yaml"))
    plans = plan_program(program, this_machine(), catalogue, [catalogue["x86/less.ymm"]]).plans
    found = [p for p in plans if any(t.nest.intrinsic.name == "x86/less.ymm" for t in p.tensor_parts)]
    assert found
    rng, expected = np.random.default_rng(3), expect(program, 3)
    kernels = []
    for plan in found[:2]:
        rows = [int(r) for r in plan.space.sample(3, rng)]
        assert disagreement(plan, iter(rows), expected) is None
        kernels += [lower(plan, plan.space.schedule(r)) for r in rows]
    check_machine_code(kernels, expected)
    check_exported_c([(k, expected) for k in kernels if not missing_features(k)], tmp_path)
