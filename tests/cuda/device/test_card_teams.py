"""Teams of warps on a card: rows of scalar programs are right, and texts of functions keep their bounds."""

import numpy as np
import pytest
from support.cards.card import card

from autosched.device.cuda.device import CudaDevice
from autosched.ir import parse, resolve
from autosched.machine.catalogue import load_target
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.programs.function import formulas_of
from autosched.tiling.candidate import Candidate
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.float_policy import FloatPolicy

ARCH, WHY = card()
pytestmark = pytest.mark.skipif(ARCH != "sm_90", reason=WHY or f"these rows are for sm_90, and the card is {ARCH}")
KNOWN = [i for isa in ("cuda", "portable") for i in Catalogue.builtin().of_isa(isa, kind="function")]
FORMULAS = formulas_of(KNOWN)
PROGRAMS = {
    "softmax": ("softmax", {"m": 70, "n": 1111, "t": "f16"}),
    "layer norm": ("layer_norm", {"m": 70, "n": 1024}),
    "sum": ("reduce", {"op": "sum", "over": "rows", "m": 2, "n": 100_000}),
    "sum of columns": ("reduce", {"op": "sum", "over": "columns", "m": 3000, "n": 72}),
    "one row": ("matmul", {"m": 1, "n": 1000, "k": 512, "a": "f16", "b": "f16", "acc": "f32"}),
    "sigmoid": ("elementwise", {"op": "sigmoid", "m": 70, "n": 333, "t": "bf16"}),
}


def plan_of(program):
    return make_plans(program, load_target("nvidia-h200"), {}, 1, FloatPolicy(formulas=FORMULAS))[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_are_right(name):
    workload, sizes = PROGRAMS[name]
    plan = plan_of(resolve(workload, sizes))
    rows = np.unique(np.ravel(plan.space.sample(12, np.random.default_rng(0))))
    with CudaDevice(plan.program, plan.target, cache="cold") as device:
        found = [device.measure(b) for b in device.build_all([Candidate(plan, int(row)) for row in rows])]
    assert [(m.status, m.message) for m in found] == [("ok", "")] * len(rows)


def test_the_text_of_an_exponential_keeps_its_bound():
    """Every exponent, both signs, infinities and NaN; of the result at most so many units of its last place."""
    plan = plan_of(parse("""
def f(X: f32[n], Y: f32[n], *, n=1048576):
    for i in range(n):
        Y[i] = exp(X[i])
"""))
    formula = FORMULAS["exp", "f32"]
    assert dict(formula.texts)["cuda"]
    x = (np.arange(1 << 20, dtype=np.uint32) << 12).view(np.float32)
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(np.float64))
        rounded = want.astype(np.float32)
        with CudaDevice(plan.program, plan.target) as device:
            y = device.callable(Candidate(plan, 0))(x)
        normal = np.isfinite(rounded) & (rounded >= np.finfo(np.float32).smallest_normal)
        last = np.exp2(np.floor(np.log2(want[normal])) - 23)
    assert (np.abs(y[normal] - want[normal]) <= formula.ulp * last).all()
    assert (np.isnan(y) == np.isnan(x)).all()
    assert (y[np.isinf(rounded)] == np.inf).all()
    assert (y[rounded < np.finfo(np.float32).smallest_normal] <= np.finfo(np.float32).smallest_normal).all()
