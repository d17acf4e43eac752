"""Small groups side by side: one product with a block-diagonal factor, which computes what the groups do."""

from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import CATALOGUE, H200

from autosched.device.correctness.special import assumed_finite
from autosched.ir import parse, resolve, run
from autosched.ir.program import Program
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue, load
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.variants.adapted import Variant
from autosched.tiling.variants.block_diagonal import block_diagonal_programs
from autosched.tiling.variants.conditional import candidates_of

HALF = {"t": "f16", "out": "f16"}
ONLY = "cuda/wgmma.m64n16k16.f16.f32"
GROUPED = """
def grouped(X: f16[m, 64], W: const[f16[64, 8]], b: f32[64], Y: f16[m, 64], *, m=20):
    S: f32[m, 64]
    for i, g, o in grid(m, 8, 8):
        S[i, g * 8 + o] = b[g * 8 + o]
        for c in range(8):
            S[i, g * 8 + o] += f32(X[i, g * 8 + c]) * f32(W[g * 8 + o, c])
    for i, g, o in grid(m, 8, 8):
        Y[i, g * 8 + o] = f16(S[i, g * 8 + o])
"""


SUMS = """
isa: cuda
requires: [sm_90a]
intrinsics:
  - name: sums.{x}
    for:
      - {x: distances, term: "abs(s32(a[i, k]) - s32(b[k, j]))"}
      - {x: offset, term: "s32(a[i, k]) * (s32(b[k, j]) + 1)"}
    scope: warpgroup
    rules: ["b: in shared memory, by descriptor; a: in shared memory or registers"]
    semantics: |
      def sums(a: s8[64, 32], b: s8[32, 16], c: s32[64, 16]):
          for i, j, k in grid(64, 16, 32):
              c[i, j] += {term}
"""


def variants(
    program: Program, only: str = ONLY, numerics: str = "reassociated", known: Catalogue = CATALOGUE
) -> list[Variant]:
    found = match(program, usable(known, H200, "simulator", [only]), numerics)
    return list(block_diagonal_programs(program, found, numerics))


def same(program: Program, variant: Variant) -> bool:
    rng = np.random.default_rng(0)
    inputs: dict[str, Any] = {}
    for name in program.inputs:
        tensor = program.tensors[name]
        inputs[name] = rng.integers(-8, 8, tensor.extents).astype(tensor.dtype.numpy)
    ours, theirs = run(variant.program, inputs), run(program, inputs)
    return all(np.array_equal(ours[n], theirs[n]) for n in program.outputs)


def test_groups_of_a_convolution_fill_a_line_with_their_channels() -> None:
    program = resolve("conv2d", {"h": 4, "w": 5, "ci": 128, "co": 64, "groups": 16, **HALF})
    whole, half = variants(program)
    assert whole.adapters == ("8 groups of W",)
    assert half.adapters == ("4 groups of W",)
    assert whole.program.tensors["W_blocks"].extents == (3, 3, 64, 64)
    assert whole.program.prepared == ("W_blocks",)
    assert same(program, whole)
    assert same(program, half)


def test_what_follows_and_an_initial_value_go_along() -> None:
    program = parse(GROUPED)
    whole, _ = variants(program)
    *_, behind = whole.program.stages
    assert [a.extent for a in behind.axes] == [20, 1, 64]
    assert same(program, whole)


def test_a_zero_between_groups_wants_finite_inputs() -> None:
    program = parse(GROUPED)
    whole, _ = variants(program)
    found = [m for ms in whole.certified(candidates_of(whole.matches)).values() for m in ms]
    assert found
    assert all(any(a.startswith("finite X: ") for a in m.certificate.assumptions) and "X" in m.finite for m in found)
    assert variants(program, numerics="special") == []
    bounded = parse(GROUPED.replace("    S: f32", "    assume(-1 <= X <= 1)\n    S: f32"))
    assert not any(a.startswith("finite") for a in variants(bounded)[0].assumptions)


@pytest.mark.slow
def test_plans_say_what_they_assume() -> None:
    program = resolve("conv2d", {"h": 4, "w": 5, "ci": 64, "co": 64, "groups": 8, **HALF})
    whole, _ = variants(program)
    usable_here = whole.certified(candidates_of(whole.matches))
    found = make_plans(whole.program, H200, usable_here, 1)
    assert any(p.tensor_parts and assumed_finite(p) >= {"X", "W"} for p in found)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("b[g * 8 + o]", "b[o]"),  # the same for every group: no element of a longer axis
        ("b[g * 8 + o]", "f32(g)"),
        ("X[i, g * 8 + c]", "X[i, g + c * 8]"),  # groups' terms take turns
        ("X[i, g * 8 + c]", "X[i, c * 8 + o]"),  # moves with results too
    ],
)
def test_other_stages_stay_as_they_are(old: str, new: str) -> None:
    program = parse(GROUPED.replace(old, new))
    for variant in variants(program):
        assert same(program, variant)
    if "X" in old:
        assert variants(program) == []


@pytest.mark.parametrize(
    ("name", "term", "found"),
    [
        ("distances", "abs(s32(X[i, g * 8 + c]) - s32(W[g * 8 + o, c]))", 0),
        ("offset", "s32(X[i, g * 8 + c]) * (s32(W[g * 8 + o, c]) + 1)", 0),  # the zeros would stand for W
        ("offset", "s32(W[g * 8 + o, c]) * (s32(X[i, g * 8 + c]) + 1)", 1),
    ],
)
def test_a_zero_must_take_the_term_away(name: str, term: str, found: int) -> None:
    text = """
def grouped(X: s8[m, 64], W: const[s8[64, 8]], S: s32[m, 64], *, m=20):
    for i, g, o in grid(m, 8, 8):
        S[i, g * 8 + o] = 0
        for c in range(8):
            S[i, g * 8 + o] += TERM
"""
    program = parse(text.replace("TERM", term))
    known = CATALOGUE.with_intrinsics(load(SUMS))
    assert [f.verdict for f in match(program, [known[f"cuda/sums.{name}"]])] == ["match"]
    made = variants(program, f"cuda/sums.{name}", known=known)
    assert bool(made) == bool(found)
    assert all(same(program, v) for v in made)


def test_few_groups_are_all_side_by_side() -> None:
    found = variants(resolve("conv2d", {"h": 4, "w": 5, "ci": 24, "co": 24, "groups": 3, **HALF}))
    assert [v.adapters for v in found] == [("3 groups of W",)]


def test_wide_groups_stay_apart() -> None:
    assert variants(resolve("conv2d", {"h": 4, "w": 5, "ci": 128, "co": 128, "groups": 2, **HALF})) == []
