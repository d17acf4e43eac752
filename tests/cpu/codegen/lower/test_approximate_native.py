"""Instructions that approximate: the bound that they state on this CPU's silicon, at which level they are chosen, and
tolerances that follow from the bound and from nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiled.native import compiled
from support.match.computes import CATALOGUE, check
from support.plans import machine, plans_of, this_machine

from autosched.codegen.lower import lower
from autosched.device.correctness.oracle import compute, slack
from autosched.errors import SpecError
from autosched.ir import parse
from autosched.ir.oracle.slack import NO_SLACK, Slack, joined
from autosched.ir.program import Program
from autosched.machine.host import host_features
from autosched.search.tuning.tune import usable
from autosched.tensorize import match
from autosched.tensorize.check.verify import check as verify
from autosched.tensorize.spec.load import load_text
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan

MEMBERS = sorted(n for n in CATALOGUE if CATALOGUE[n].path.endswith("x86/approximate.yaml"))
AVX512 = machine(frozenset(["avx2", "fma", "avx512f", "avx512vl", "avx512bw"]))
ROOTS = "def f(A: f32[70], C: f32[70], D: f32[70]):\n for i in range(70):\n  C[i] = {}\n"
ROOTS += " for i in range(70):\n  D[i] = C[i] * 3.0\n"


def plans(program: Program, level: str = "real") -> list[Plan]:
    found = plan_program(program, AVX512, CATALOGUE, usable(CATALOGUE, AVX512, "cpu"), numerics=level).every
    return [p for p in found if any(m.intrinsic.numerics.relative for m in p.mappings)]


@pytest.mark.x86
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MEMBERS)
def test_the_bound_holds_on_this_cpu(name: str) -> None:
    """All patterns of f16, a million of wider ones: by numpy in f64 (by long doubles of f64)."""
    intrinsic = CATALOGUE[name]
    if missing := intrinsic.requires - host_features():
        pytest.skip(f"this machine lacks {', '.join(sorted(missing))}")
    dtype, kind = intrinsic.accumulator.dtype, np.dtype(intrinsic.accumulator.dtype.numpy)
    count = 1 << 16 if kind.itemsize == 2 else 1 << 20
    rng = np.random.default_rng(0)
    a = np.arange(count, dtype=np.uint16).view(kind) if kind.itemsize == 2 else rng.random(count).astype(kind)
    if kind.itemsize != 2:
        a = np.ldexp(a + 1, rng.integers(-100, 100, count)).astype(kind) * rng.choice(np.array([-1, 1], kind), count)
    term = "1.0 / A[i]" if "rcp" in name else "rsqrt(A[i])"
    program = parse(f"def f(A: {dtype}[{count}], C: {dtype}[{count}]):\n for i in range({count}):\n  C[i] = {term}\n")
    found = match(program, [intrinsic], "real")[0]
    assert found.verdict == "match"
    (plan, *_) = [p for p in _planned(program, name) if p.tensor_parts]
    got = compiled(lower(plan, plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(0))[0]))))(A=a)
    with np.errstate(all="ignore"):
        wide = a.astype(np.longdouble)
        exact = 1 / wide if "rcp" in name else 1 / np.sqrt(wide)
        share = np.abs(got.astype(np.longdouble) - exact) / np.abs(exact)
    normal = np.isfinite(exact) & (np.abs(exact) < dtype.greatest) & (np.abs(exact) >= 2.0 ** (1 - dtype.bias))
    normal &= np.abs(wide) >= 2.0 ** (1 - dtype.bias)
    assert normal.sum() > count / 4
    assert intrinsic.numerics.relative is not None
    assert share[normal].max() <= intrinsic.numerics.relative
    assert share[normal].max() > intrinsic.numerics.relative / 64  # it does approximate
    assert (np.isnan(got) == np.isnan(exact)).all()


def _planned(program: Program, name: str) -> list[Plan]:
    target = this_machine()
    chosen = usable(CATALOGUE, target, "cpu", (name,))
    return list(plan_program(program, target, CATALOGUE, chosen, numerics="real").every)


@pytest.mark.x86
def test_a_bound_that_is_too_tight_is_found() -> None:
    if missing := {"avx512f"} - host_features():
        pytest.skip(f"this machine lacks {', '.join(missing)}")
    intrinsic = CATALOGUE["x86/vrcp14ps.zmm"]
    assert verify(intrinsic, host_features()).ok
    tight = replace(intrinsic, numerics=replace(intrinsic.numerics, relative=2.0**-20))
    found = verify(tight, host_features())
    assert not found.ok
    assert "the semantics" in str(found)


@pytest.mark.parametrize("level", ["bitwise", "special", "reassociated", "rescaled"])
def test_other_levels_refuse_it(level: str) -> None:
    program = parse(ROOTS.format("rsqrt(A[i])"))
    (found,) = match(program, [CATALOGUE["x86/vrsqrt14ps.zmm"]], level, ["C"])
    assert (found.verdict, found.reason and found.reason.code) == ("no", "NUMERICS")
    assert found.reason is not None
    assert found.reason.fix == "accept --numerics real"
    assert not plans(program, level)


@pytest.mark.parametrize(
    ("name", "term", "fits"),
    [
        ("vrsqrt14ps.zmm", "rsqrt(A[i])", True),
        ("vrsqrt14ps.zmm", "1.0 / sqrt(A[i])", True),
        ("vrsqrt14ps.zmm", "sqrt(A[i])", False),
        ("vrsqrt14ps.zmm", "1.0 / A[i]", False),
        ("vrsqrt14ps.zmm", "1.001 / sqrt(A[i])", False),
        ("vrcp14ps.zmm", "1.0 / A[i]", True),
        ("vrcp14ps.zmm", "-1.0 / A[i]", False),
        ("vrcp14ps.zmm", "1.0 / abs(A[i])", False),
        ("vrcp14ps.zmm", "f32(f16(1.0 / A[i]))", False),
    ],
)
def test_which_functions_it_computes(name: str, term: str, fits: bool) -> None:
    """One function of reals, however it is written; a conversion on the way is no such, and stays in the program."""
    program = parse(f"def f(A: f32[70], C: f32[70]):\n for i in range(70):\n  C[i] = {term}\n")
    (found,) = match(program, [CATALOGUE[f"x86/{name}"]], "real", adapt=False)
    assert (found.verdict == "match") == fits
    check(program, CATALOGUE[f"x86/{name}"], 0, "real")


@pytest.mark.parametrize(
    ("name", "term", "function"),
    [
        ("vrsqrt14ps.zmm", "B[i] * rsqrt(A[i] + 0.5)", "rsqrt(C_argument[i])"),
        ("vrsqrt14ps.zmm", "B[i] / sqrt(A[i])", "rsqrt(A[i])"),
        ("vrcp14ps.zmm", "B[i] / (A[i] + 2.0) - 1.0", "1.0 / C_argument[i]"),
        ("vrcp14ps.zmm", "B[i] * (1.0 / A[i])", "1.0 / A[i]"),
        ("vrcp14ps.zmm", "2.0 / A[i]", None),
        ("vrcp14ps.zmm", "sqrt(A[i])", None),
        ("vrsqrt14ps.zmm", "B[i] / sqrt(-A[i] * 0.0)", "rsqrt(C_argument[i])"),
    ],
)
def test_a_function_within_an_expression(name: str, term: str, function: str | None) -> None:
    """It is a stage of its own, and what is left takes its elements."""
    program = parse(f"def f(A: f32[70], B: f32[70], C: f32[70]):\n for i in range(70):\n  C[i] = {term}\n")
    found = check(program, CATALOGUE[f"x86/{name}"], 0, "real")
    assert {m.adapters for m in found.mappings} == (set() if function is None else {(f"apart {function}",)})


def test_a_function_of_rows_is_computed_for_each_row() -> None:
    text = "def f(X: f32[9, 70], S: f32[9], C: f32[9, 70]):\n for i, j in grid(9, 70):\n  C[i, j] = X[i, j] / S[i]\n"
    found = check(parse(text), CATALOGUE["x86/vrcp14ps.zmm"], 0, "real")
    (shape,) = {m.program.tensors["C_function"].extents for m in found.mappings}
    assert shape == (9,)
    for guarded in ("if j < 5:\n   C[i, j] = X[i, j] / S[i]", "C[i, j] = C[i, j] / X[i, j]"):
        other = parse(text.replace("C[i, j] = X[i, j] / S[i]", guarded))
        assert check(other, CATALOGUE["x86/vrcp14ps.zmm"], 0, "real").verdict == "no"


@pytest.mark.x86
@pytest.mark.parametrize("term", ["B[i] * rsqrt(A[i] + 0.5)", "B[i] / (A[i] + 2.0)"])
def test_kernels_with_a_function_apart(term: str) -> None:
    if missing := {"avx512f", "avx512vl"} - host_features():
        pytest.skip(f"this machine lacks {', '.join(sorted(missing))}")
    program = parse(f"def f(A: f32[70], B: f32[70], C: f32[70]):\n for i in range(70):\n  C[i] = {term}\n")
    made = [p for p in plans(program) if "apart" in p.name]
    assert made
    rng = np.random.default_rng(0)
    given = {n: rng.random(70, np.float32) for n in "AB"}
    a, b = (given[n].astype(np.float64) for n in "AB")
    exact = b / np.sqrt(a + 0.5) if "rsqrt" in term else b / (a + 2)
    for plan in made:
        kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, rng)[0])))
        found, oracle = compiled(kernel)(**given), compute(program, 0, given, slack(plan))
        off = np.abs(found - exact) / exact
        assert 2.0**-22 < off.max() < 2.0**-13.9 or "vrcpps" in plan.name or "vrsqrtps" in plan.name
        assert (np.abs(found - np.asarray(oracle.wants["C"])) <= np.asarray(oracle.tolerances["C"])).all()


def test_tolerances_follow() -> None:
    """Of what the instruction writes, and of what is computed from it; an element that is further off is wrong."""
    program = parse(ROOTS.format("1.0 / sqrt(A[i])"))
    (plan, *_) = plans(program)
    share = dict(slack(plan).tensors)["C"]
    assert 2.0**-14 < share < 1.01 * 2.0**-14
    given = {"A": np.linspace(0.5, 2, 70, dtype=np.float32)}
    narrow, wide = compute(program, 0, given), compute(program, 0, given, slack(plan))
    for name in "CD":
        before, after = (np.asarray(o.tolerances[name]) for o in (narrow, wide))
        want = np.abs(np.asarray(wide.wants[name]).astype(np.float64))
        assert (after >= 2.0**-14 * want).all()
        assert (after <= 1.1 * 2.0**-14 * want).all()
        assert (before < 2.0**-20 * want).all()


@pytest.mark.parametrize("term", ["floor({})", "round({} * 0.5)", "1.0 if {} > 10.0 else 0.0", "f32(s32({}))"])
def test_what_jumps_takes_no_approximation(term: str) -> None:
    """A reciprocal that is a little less than 10 would be 9 then."""
    text = "def f(A: f32[64], C: f32[64]):\n for i in range(64):\n  C[i] = {}\n"
    assert plans(parse(text.format("1.0 / A[i] - 0.25")))
    assert not plans(parse(text.format(term.format("1.0 / A[i]"))))


def test_a_part_of_an_expression_is_allowed_its_own_share() -> None:
    """2^-14 of the reciprocal, however little is left of it, and however much more there is."""
    text = "def f(A: f32[64], C: f32[64]):\n assume(2 <= A <= 4)\n for i in range(64):\n  C[i] = 1.0 / A[i] {}\n"
    for rest in ("- 0.25", "+ 1000.0"):
        program = parse(text.format(rest))
        found = compute(program, 0, slack=Slack(1.0, (("C_function", 2.0**-14),)))
        share, tolerance = 2.0**-14 / found.inputs["A"].astype(np.float64), np.asarray(found.tolerances["C"])
        exact = np.asarray(compute(program, 0).tolerances["C"])
        assert (tolerance >= share).all()
        assert (tolerance <= 1.01 * share + 2 * exact + 2.0**-24 * 2000).all()


def test_what_several_plans_allow() -> None:
    one, two = Slack(2.0, (("C", 0.1),)), Slack(1.0, (("C", 0.2), ("D", 0.1)))
    both = one.joined(two)
    assert both == joined([two, one]) == Slack(2.0, (("C", 0.2), ("D", 0.1)))
    assert len({s.key for s in (NO_SLACK, one, two, both)}) == 4
    assert (NO_SLACK.key, Slack(64.0).key) == ("1.0", "64.0")
    assert (both.share("C"), both.share("E")) == (0.2, 0.0)
    assert (both.inside({"C", "D", "E"}), both.inside({"C", "E"})) == (0.0, 0.1)  # D is a tensor of the plan's own


@pytest.mark.x86
def test_kernels_are_within_the_tolerance_and_not_exact() -> None:
    if missing := {"avx512f", "avx512vl"} - host_features():
        pytest.skip(f"this machine lacks {', '.join(sorted(missing))}")
    program = parse(ROOTS.format("1.0 / sqrt(A[i])"))
    (plan, *_) = plans(program)
    kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(0))[0])))
    given = {"A": np.linspace(0.5, 2, 70, dtype=np.float32)}
    oracle = compute(program, 0, given, slack(plan))
    found = compiled(kernel)(**given)
    for name, got in zip(program.outputs, found, strict=True):
        off = np.abs(got.astype(np.float64) - np.asarray(oracle.wants[name]).astype(np.float64))
        assert (off <= np.asarray(oracle.tolerances[name])).all()
        assert off.max() > 2.0**-20


TEXT = """
isa: made
intrinsics:
  - name: up
    semantics: |
      def up(a: f32[8], c: f32[8]):
          for i in range(8):
              {}
    numerics: {{relative: {}}}
"""


@pytest.mark.parametrize(
    ("term", "share", "said"),
    [
        ("c[i] += a[i]", "2^-14", "only an instruction that overwrites its target has one"),
        ("c[i] = rsqrt(a[i])", "2^-24", "is not between the rounding of f32"),
        ("c[i] = rsqrt(a[i])", "2^-2", "is not between the rounding of f32"),
        ("c[i] = rsqrt(a[i])", "2**-14", "relative"),
    ],
)
def test_what_no_bound_is(term: str, share: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load_text(TEXT.format(term, share))


def test_bounds_are_written_as_vendors_write_them() -> None:
    known = {"2^-14": "2^-14", "1.5 * 2^-12": "1.5·2^-12", "2^-9.9": "2^-9.9", "0.001": "1.024·2^-10"}
    for text, said in known.items():
        (found,) = load_text(TEXT.format("c[i] = rsqrt(a[i])", text))
        assert str(found.numerics) == f"within {said} of each element"


def test_a_function_has_another_bound() -> None:
    text = "isa: made\nintrinsics:\n  - name: up\n    kind: function\n"
    text += "    semantics: |\n      def up(x: f32[1], y: f32[1]):\n"
    text += "          y[0] = exp(x[0])\n    numerics: {ulp: 2, relative: 2^-14}\n    implementation: |\n"
    text += "      def up(x: f32, y: f32[1]):\n          y[0] = exp(x)\n"
    with pytest.raises(SpecError, match="relative: only an instruction that computes"):
        load_text(text)


def test_plans_of_a_machine_without_it_are_exact() -> None:
    program = parse(ROOTS.format("rsqrt(A[i])"))
    assert all(slack(p) == NO_SLACK for p in plans_of(program, machine(frozenset(["avx2", "fma"]))))
