"""`kind: function`: approximations are measured against their bound, and special values count."""

from __future__ import annotations

import dataclasses
from importlib import resources

import numpy as np
import pytest

from autosched.device.correctness.oracle import OVER_REALS, compute, slack
from autosched.errors import SpecError
from autosched.ir import parse
from autosched.ir.formula import apply_formulas, closed, evaluate_formula
from autosched.ir.oracle.slack import NO_SLACK, Slack
from autosched.ir.value import Call, Cast
from autosched.machine.catalogue import load_target
from autosched.tensorize.check.function_error import errors, moved
from autosched.tensorize.check.verify import check
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text
from autosched.tensorize.spec.programs.function import formulas_of
from autosched.tiling.planner.plan_program import plan_program

TEXT = resources.files("autosched.intrinsics").joinpath("portable/functions.yaml").read_text(encoding="utf-8")
NOWHERE: frozenset[str] = frozenset()
FUNCTIONS = Catalogue.builtin().of_isa(kind="function")
SHORT = next(i.formula for i in FUNCTIONS if i.name == "cuda/short_exp.f32")
assert SHORT is not None


@pytest.mark.sampled(4)
@pytest.mark.parametrize("intrinsic", FUNCTIONS, ids=lambda i: i.name)
def test_built_in_functions_keep_their_bound(intrinsic) -> None:
    report = check(intrinsic, NOWHERE, formulas=formulas_of(FUNCTIONS))
    assert report.ok, str(report)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        ("0.4999914765357971", "0.4999934765357971", "exp"),
        ("s32(0) if x < -87.33654022216797 else power", "power", "exp"),
        ("bits_f32(normal) if x <= 88.72283172607422 else x + inf", "bits_f32(normal)", "exp"),
        ("finite = found if x < inf else x", "finite = found", "log"),
        ("(x * 8388608.0 if tiny else x)", "x", "log"),
        ("above = -8.6 if x < -8.6 else x", "above = x", "tanh"),
        ("0.000238355511", "0.000238455511", "erf"),
    ],
)
def test_a_mistake_is_found(right: str, wrong: str, name: str) -> None:
    text = TEXT.replace("a = x * 8388608.0 if tiny else x", "a = (x * 8388608.0 if tiny else x)")
    assert text.count(right) == 1
    made = {i.name: i for i in load_text(text.replace(right, wrong))}[f"portable/{name}.f32"]
    assert not check(made, NOWHERE, formulas=formulas_of(FUNCTIONS)).ok


AVX512 = resources.files("autosched.intrinsics").joinpath("x86/avx512_functions.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        ("low = -200.0 if x < -200.0 else x", "low = x", "exp"),
        ("-0.693147182464599609375", "-0.69314724206924438", "exp"),
        ("1.0000146627426147), a)\n          y[0] = scalb", "1.0), a)\n          y[0] = scalb", "exp"),
        ("y[0] = scalb(grown, k)", "y[0] = grown * bits_f32((s32(k) + 127) << 23)", "exp"),
        ("fma(k, 2.1219444005469059e-4, fma(k, -0.693359375, low))", "fma(k, -0.693359375, low)", "sigmoid"),
    ],
)
def test_a_mistake_with_a_table_is_found(right: str, wrong: str, name: str) -> None:
    assert AVX512.count(right) == 1
    made = {i.name: i for i in load_text(AVX512.replace(right, wrong))}[f"x86/{name}.f32"]
    assert not check(made, NOWHERE, formulas=formulas_of(FUNCTIONS)).ok


def test_a_formula_requires_what_those_it_calls_do() -> None:
    portable, own = (formulas_of([i for i in FUNCTIONS if i.isa == isa]) for isa in ("portable", "x86"))
    assert portable["sigmoid", "f32"].requires == frozenset()
    assert own["exp", "f32"].requires == frozenset(["avx512f"])
    called = closed(next(i.formula for i in FUNCTIONS if i.name == "portable/sigmoid.f32"), own)
    assert called.requires == frozenset(["avx512f"])


def test_special_values() -> None:
    known = formulas_of(i for i in FUNCTIONS if i.isa == "portable")
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 88.72283, 88.72284, -87.33654, -87.33655, 1e-45], np.float32)
    with np.errstate(all="ignore"):
        exp = evaluate_formula(known["exp", "f32"], x)
        log = evaluate_formula(known["log", "f32"], x)
        tanh = evaluate_formula(known["tanh", "f32"], x)
    np.testing.assert_array_equal(exp[:5], np.array([1, 1, np.inf, 0, np.nan], np.float32))
    assert np.isfinite(exp[5])
    assert np.isinf(exp[6])
    assert exp[7] >= np.float32(2.0**-126)  # the least normal number; what is less is 0
    assert exp[8] == 0
    np.testing.assert_array_equal(log[:5], np.array([-np.inf, -np.inf, np.inf, np.nan, np.nan], np.float32))
    assert log[9] == np.float32(np.log(2.0**-149))
    np.testing.assert_array_equal(tanh[:5], np.array([0, -0.0, 1, -1, np.nan], np.float32))
    assert np.signbit(tanh[1])


def test_special_values_with_a_table() -> None:
    exp = formulas_of(i for i in FUNCTIONS if i.isa == "x86")["exp", "f32"]
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 3.4e38, -3.4e38, 88.72284, -103.98], np.float32)
    with np.errstate(all="ignore"):
        found = evaluate_formula(exp, x)
    expected = np.array([1, 1, np.inf, 0, np.nan, np.inf, 0, np.inf, 0, np.inf, 0], np.float32)
    np.testing.assert_array_equal(found, expected)
    assert not np.signbit(found[~np.isnan(found)]).any()


def test_subnormal_results_may_be_zero_only_where_that_is_stated() -> None:
    exact = np.array([2.0**-130, -(2.0**-130), 2.0**-130, 2.0**-126])
    found = np.array([0.0, -0.0, -0.0, 0.0], np.float32)
    assert errors(found, exact, flushed=True)[:2].tolist() == [0.0, 0.0]
    assert (errors(found, exact, flushed=True)[2:] > 4).all()
    assert (errors(found, exact) > 4).all()


def test_narrow_floats_go_through_f32() -> None:
    known = formulas_of(f for f in FUNCTIONS if f.isa == "portable")
    program = parse("def f(X: bf16[4], Y: bf16[4]):\n    for i in range(4):\n        Y[i] = exp(X[i])\n")
    found = apply_formulas(program.stages[0].assign.value, known)
    assert isinstance(found, Cast)
    assert isinstance(found.operand, Call)
    assert found.operand.function == "portable/exp.f32"
    wide = parse("def f(X: f64[4], Y: f64[4]):\n    for i in range(4):\n        Y[i] = exp(X[i])\n")
    assert apply_formulas(wide.stages[0].assign.value, known) == wide.stages[0].assign.value


SQUARE = """
isa: portable
intrinsics:
  - name: mine
    kind: function
    semantics: |
      def mine(x: f32[1], y: f32[1]):
          y[0] = exp(x[0])
    numerics: {ulp: 2}
    implementation: |
      def mine(x: f32, y: f32[1]):
          y[0] = x + 1.0
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    numerics: {ulp: 2}\n", "", "a function needs numerics"),
        ("ulp: 2}", "ulp: 9}", "ulp"),
        ("    kind: function\n", "    kind: copy\n", "only a function has one"),
        ("y[0] = exp(x[0])", "y[0] = x[0] + x[0]", "a function is one call"),
        ("def mine(x: f32, y: f32[1]):", "def mine(x: f64, y: f64[1]):", "not a function of one f32"),
        ("y[0] = x + 1.0", "y[0] = z + 1.0", "unknown name 'z'"),
    ],
)
def test_keys_that_do_not_fit_are_refused(old: str, new: str, said: str) -> None:
    assert load_text(SQUARE)[0].formula is not None
    with pytest.raises(SpecError, match=said.replace("{", r"\{")) as error:
        load_text(SQUARE.replace(old, new), "mine.yaml")
    assert error.value.location is not None


@pytest.mark.parametrize(("off", "right"), [(0.625, True), (0.25, False)])
def test_a_rounded_argument_is_an_error_of_its_own(off: float, right: bool) -> None:
    """2^(x log2 e) of a rounded product: far off where x is large, by no more than its argument is."""
    short = dataclasses.replace(SHORT, argument_ulp=off)
    x = np.random.default_rng(0).uniform(-87, 88, 20_000).astype(np.float32)
    found = np.exp2((x * np.float32(1.44269504)).astype(np.float64)).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert errors(found, exact).max() > 20
    assert (errors(found, exact, beside=moved(short, x)).max() <= short.ulp) == right


def test_functions_that_round_their_argument_stand_in_where_asked() -> None:
    known = [i for isa in ("cuda", "portable") for i in Catalogue.builtin().of_isa(isa, kind="function")]
    key = "exp", "f32"
    assert formulas_of(known)[key].name == "cuda/exp.f32"
    assert (formulas_of(known)[key].bound, SHORT.bound) == ("within 3.5 ulp", "within 2 ulp, and 0.625 of the argument")
    assert formulas_of(known, anew=True)[key].name == "cuda/short_exp.f32"
    program = parse("def f(X: f32[8], Y: f32[8]):\n    for i in range(8):\n        Y[i] = exp(X[i])\n")
    target, catalogue = load_target("nvidia-h200"), Catalogue.builtin()
    for level, wide in (("rescaled", 1.0), ("real", OVER_REALS)):
        plan = plan_program(program, target, catalogue, [], numerics=level).plans[0]
        assert any(f.argument_ulp for f in plan.formulas.values()) == (level == "real")
        assert slack(plan) == Slack(wide)
    inputs = {"X": np.linspace(-80, 80, 8, dtype=np.float32)}
    narrow, broad = (compute(program, 0, inputs, s) for s in (NO_SLACK, Slack(OVER_REALS)))
    one, more = (np.asarray(o.tolerances["Y"]) for o in (narrow, broad))
    assert (more >= one + 2.0**-23 * np.abs(inputs["X"]) * narrow.wants["Y"]).all()


def test_only_functions_round_their_argument() -> None:
    text = resources.files("autosched.intrinsics").joinpath("arm/fma.yaml").read_text(encoding="utf-8")
    assert "numerics: {" in text
    with pytest.raises(SpecError, match="only a function has one"):
        load_text(text.replace("numerics: {", "numerics: {argument_ulp: 0.5, "), "fma.yaml")
