"""Promotion: partial sums on an accumulator of few bits, added up in the program's own, and what that is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.device.correctness.oracle import compute, slack
from autosched.device.simulator.verify.runner import INTERPRETER, Arrays
from autosched.device.simulator.verify.verify import Verifier, check
from autosched.ir import parse, random_inputs, run
from autosched.ir.oracle.inputs import split_inputs
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tensorize import match
from autosched.tensorize.match_types import Match
from autosched.tensorize.reduction.partial_sums import is_partial
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.held_together import held_together
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.planner.tile_loops import tile_loops
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.adapted import adapted_programs
from autosched.tiling.variants.conditional import candidates_of

CATALOGUE = Catalogue.builtin()
WGMMA = "cuda/wgmma.m64n8k32.e4m3.e4m3.f32"
MMA = "cuda/mma.m16n8k32.e4m3.e4m3.f32"
H200 = load_target("nvidia-h200")
ADA = replace(H200, features=H200.features - {"sm_90", "sm_90a"})
GEMM = """
def gemm(A: e4m3[m, k], B: e4m3[k, n], C: f32[m, n], *, m=5, n=6, k=200):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += f32(A[i, p]) * f32(B[p, j])
"""
LIVE = """
def live(A: e4m3[m, k], B: e4m3[k, n], C: f32[m, n], *, m=5, n=6, k=256):
    for p in range(k):
        for i, j in grid(m, n):
            C[i, j] += f32(A[i, p]) * f32(B[p, j])
"""
CONV = """
def conv(X: e4m3[h, w, ci], W: e4m3[3, 3, ci, co], Y: f32[h, w, co], *, h=4, w=3, ci=40, co=5):
    for y, x, o in grid(h, w, co):
        Y[y, x, o] = 2
        for r, s, c in grid(3, 3, ci):
            if 0 <= y + r - 1 < h and 0 <= x + s - 1 < w:
                Y[y, x, o] += f32(X[y + r - 1, x + s - 1, c]) * f32(W[r, s, c, o])
"""
BESIDE = """
def beside(A: e4m3[4, 300], B: e4m3[300, 4], C: f32[4, 4], D: f32[4]):
    for i in range(4):
        D[i] = 1
        for j in range(4):
            C[i, j] = 0
            for p in range(300):
                C[i, j] += f32(A[i, p]) * f32(B[p, j])
            D[i] += C[i, j]
"""
PROGRAMS = {"gemm": GEMM, "live": LIVE, "conv": CONV, "beside": BESIDE}


def promoted(text: str, intrinsic: str = WGMMA, **sizes: int) -> Match:
    program = parse(text, sizes=sizes)
    stage = next(s.name for s in program.stages if s.reduction)
    (found,) = match(program, [CATALOGUE[intrinsic]], stages=[stage])
    return found


def whole(program: Program, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Small whole numbers, of which sums in any order are exact."""
    arrays, scalars = split_inputs(program, random_inputs(program, np.random.default_rng(seed)))
    rng = np.random.default_rng(seed)
    return {n: rng.integers(-2, 3, a.shape).astype(a.dtype) for n, a in arrays.items()}, scalars


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_promoted_program_computes_the_same(name: str) -> None:
    found = promoted(PROGRAMS[name])
    assert found.verdict == "match", found.reason
    assert any("as it stands: no" in n for n in found.notes)
    original = found.program
    arrays, scalars = whole(original, 4)
    wanted = run(original, arrays, scalars)
    programs = {str(m.program): m for m in found.mappings}
    assert programs
    for mapping in programs.values():
        assert mapping.numerics == "reassociated"
        (adapter,) = mapping.adapters
        assert adapter.startswith("promote to f32 every ")
        assert mapping.stage.assign.tensor.endswith("_part")
        for output, array in run(mapping.program, arrays, scalars).items():
            np.testing.assert_array_equal(array, wanted[output])


def test_the_bound_grows_with_the_steps_and_is_stated() -> None:
    found = promoted(GEMM, k=4096)
    stated = {m.adapters[0]: m.certificate.bound for m in found.mappings}
    factors = {int(a.rpartition(" ")[2]): b.factor for a, b in stated.items() if b is not None}
    assert sorted(factors) == [64, 128, 256]
    assert factors[64] < factors[128] < factors[256] <= 2.0**-4  # a rounding to e4m3
    lemmas = [o.statement for m in found.mappings for o in m.certificate.obligations if o.part == "adapter"]
    assert any("⌈Kp/32⌉" in line and "γ_⌈K/Kp⌉" in line and "for Kp = 128" in line for line in lemmas)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (GEMM.replace("k=200", "k=32"), "no longer than a part"),
        (GEMM.replace("C[i, j] +=", "C[i, j] = max(C[i, j],").replace("B[p, j])", "B[p, j]))"), "no sum"),
    ],
)
def test_there_is_nothing_to_promote(text: str, why: str) -> None:
    assert not any("promote" in a for m in promoted(text).mappings for a in m.adapters), why


def test_an_accumulator_that_is_wide_enough_is_left_alone() -> None:
    (found,) = match(parse(GEMM), [CATALOGUE[MMA].on(H200.features)])
    assert [m.adapters for m in found.mappings] == [(), ()]
    (other,) = match(parse(GEMM), [CATALOGUE[WGMMA]], numerics="real")
    assert not any(m.adapters for m in other.mappings), "accepted as it is over the reals"


def test_partial_sums_written_by_hand_need_no_adapter() -> None:
    by_hand = next(m for m in promoted(GEMM).mappings).program
    (found,) = match(by_hand, [CATALOGUE[WGMMA]], stages=["C_part"])
    assert found.verdict == "match"
    assert found.mappings[0].adapters == ()


@pytest.mark.parametrize(
    ("term", "partial"),
    [("P[q, i, j]", True), ("P[q, i, j] * S[q, j]", True), ("S[q, j] * (P[q, i, j] * R[i])", True),
     ("P[q, i, 0] * S[q, j]", False), ("P[q, i, j] * P[q, i, j]", False), ("P[q, i, j] + S[q, j]", False)],
)  # fmt: skip
def test_sums_of_groups_are_partial_where_each_is_read_once(term: str, partial: bool) -> None:
    """With a scale, too; not where a product of matrices, or a square, is what reads them."""
    program = parse(f"""
def f(A: e4m3[8, 64], B: e4m3[64, 8], S: f32[2, 8], R: f32[8], Y: f32[8, 8]):
    P: f32[2, 8, 8]
    for q, i, j in grid(2, 8, 8):
        P[q, i, j] = 0
        for p in range(32):
            P[q, i, j] += f32(A[i, q * 32 + p]) * f32(B[q * 32 + p, j])
    for i, j in grid(8, 8):
        Y[i, j] = 0
        for q in range(2):
            Y[i, j] += {term}
""")
    assert is_partial(program, program.stage("P")) is partial


@pytest.mark.parametrize("change", [("        for q in range(2):\n", "        for q in range(1):\n"),
                                    ("Y[i, j] += P", "if q < 1:\n                Y[i, j] += P")])  # fmt: skip
def test_one_sum_alone_is_no_partial_sum(change: tuple[str, str]) -> None:
    text = """
def f(A: e4m3[8, 64], B: e4m3[64, 8], Y: f32[8, 8]):
    P: f32[2, 8, 8]
    for q, i, j in grid(2, 8, 8):
        P[q, i, j] = 0
        for p in range(32):
            P[q, i, j] += f32(A[i, q * 32 + p]) * f32(B[q * 32 + p, j])
    for i, j in grid(8, 8):
        Y[i, j] = 0
        for q in range(2):
            Y[i, j] += P[q, i, j]
"""
    assert is_partial(parse(text), parse(text).stage("P"))
    assert change[0] in text
    program = parse(text.replace(*change))
    assert not is_partial(program, program.stage("P"))


TURNS = """
def f(A: e4m3[8, 64], B: e4m3[64, 8], S: f32[2, 8], Y: f32[8, 8]):
    P: f32[8, 8]
    T: f32[8, 8]
    for i, j in grid(8, 8):
        T[i, j] = 0
    for q in range(2):
        for i, j in grid(8, 8):
            P[i, j] = 0
            for p in range(32):
                P[i, j] += f32(A[i, q * 32 + p]) * f32(B[q * 32 + p, j])
        for i, j in grid(8, 8):
            T[i, j] += P[i, j] * S[q, j]
    for i, j in grid(8, 8):
        Y[i, j] = T[i, j]
"""


@pytest.mark.parametrize(
    ("change", "partial"),
    [(("P[i, j] * S", "P[i, j] * S"), True), (("T[i, j] += P[i, j] * S", "T[i, j] += P[i, 0] * S"), False),
     (("+= P[i, j] * S", "+= P[i, j] * P[i, j] * S"), False), (("T[i, j] += P", "T[i, j] = P"), False),
     (("T[i, j] += P", "T[i, j] = 0\n            T[i, j] += P"), False),
     (("T[i, j] += P", "T[i, j] = T[i, j] * 0.5\n            T[i, j] += P"), False), (("range(2)", "range(1)"), False),
     (("grid(8, 8):\n            T", "grid(8, q + 7):\n            T"), True),
     (("grid(8, 8):\n            T[i, j] += P[i, j]", "grid(8, q + 7):\n            T[i, j] += P[i, 0]"), False),
     (("T[i, j] += P[i, j] * S[q, j]", "Y[i, j] = P[i, j]"), False)],
)  # fmt: skip
def test_sums_of_turns_are_partial_where_several_turns_add_each_once(change: tuple[str, str], partial: bool) -> None:
    program = parse(TURNS.replace(*change))
    bodies: list[Program] = []

    def planner(body: Program, _: str) -> Sequence[Plan]:
        bodies.append(body)
        return ()

    tile_loops(program, held_together(program, ()).parts, planner, "", False)
    assert [{*body.partial_sums} for body in bodies if body.partial_sums] == [{"P"}] * partial
    verdicts = [match(body, [CATALOGUE[WGMMA]], stages=["P"])[0].verdict for body in bodies]
    assert ("match" in verdicts) is partial


def promoted_plans() -> list[Plan]:
    program = parse(GEMM, sizes={"m": 9, "n": 10, "k": 150})
    instructions = usable(CATALOGUE, ADA, "simulator", [MMA])
    found: list[Plan] = []
    for variant in adapted_programs(program, match(program, instructions), instructions, "reassociated"):
        if variant.adapters:
            mappings = variant.certified(candidates_of(variant.matches))
            found += make_plans(variant.program, ADA, mappings, 1)[:1]
    return found


def test_promoted_kernels_run_on_the_units_model() -> None:
    """GPU kernels, interpreted with 13 fraction bits: within the tolerance, and not the bits of a full accumulator."""
    plans = promoted_plans()
    assert {p.name.partition(":")[0] for p in plans} == {"C_part"}
    assert len(plans) >= 2, "the number of steps is a choice"
    differs = False
    for plan in plans[:2]:
        oracle = compute(plan.program, 1, slack=slack(plan))
        ids = plan.space.enumerate().ids
        for row in ids[:: max(1, len(ids) // 3)][:3]:
            kernel = lower(plan, plan.space.schedule(int(row)))
            check_kernel(kernel)
            difference = check(kernel, oracle)
            assert difference.ok, (plan.name, difference)
            differs |= difference.error > 0
    assert differs, "13 fraction bits are seen in the result"


def test_kernels_are_compared_with_the_program_as_it_was_given() -> None:
    """Not with what an adapter made of it alone: a mistake of the adapter would be in both."""
    plan = promoted_plans()[0]
    kernel = lower(plan, plan.space.schedule(int(plan.space.enumerate().ids[0])))
    sizes = {"m": 9, "n": 10, "k": 150}
    given, other = parse(GEMM, sizes=sizes), parse(GEMM.replace("C[i, j] = 0", "C[i, j] = 100"), sizes=sizes)
    for written, right in ((None, True), (given, True), (other, False)):
        verdict = Verifier(0, written=written).whole(kernel, plan)
        assert verdict.difference is not None
        assert verdict.difference.ok is right


def test_what_few_bits_allow_does_not_hide_zeros() -> None:
    plan = promoted_plans()[0]
    kernel = lower(plan, plan.space.schedule(int(plan.space.enumerate().ids[0])))
    oracle = compute(plan.program, 1)

    def zeros(kernel: Kernel, arrays: Arrays, scalars: Mapping[str, Any]) -> dict[str, Any]:
        """Zeros where they lie within the bound of a full accumulator times the slack."""
        times = slack(plan).sums
        far = {name: np.abs(w) > times * np.asarray(oracle.tolerances[name]) for name, w in oracle.wants.items()}
        assert not all(f.all() for f in far.values())
        return {name: np.where(far[name], want, 0).astype(want.dtype) for name, want in oracle.wants.items()}

    right = Verifier(1, oracle).whole(kernel, plan).difference
    wrong = Verifier(1, oracle, replace(INTERPRETER, run=zeros)).whole(kernel, plan).difference
    assert right is not None
    assert wrong is not None
    assert right.ok
    assert not wrong.ok
