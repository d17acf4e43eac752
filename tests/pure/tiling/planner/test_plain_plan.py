"""Among plans in tile loops one without them stays: it is there if kernels of the others are refused."""

from __future__ import annotations

from support.paths import ROOT

import autosched
from autosched.ir import load
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tiling.planner.families import ADAPTED, ON_THE_WAY, ONE_PASS, family_of, with_plain
from autosched.tiling.planner.plan_program import MOST_IN_LOOPS


def test_a_plain_plan_stays_beside_one_pass() -> None:
    program = load(ROOT / "examples" / "fused" / "attention_rounded.py:attention_rounded", h=2, n=128, l=128, d=64)
    only = ("cuda/wgmma.*.f16.f32", "cuda/mma.*.f16.f16.f32")
    request = TuneRequest(program, autosched.target("nvidia-h200"), numerics="real", only=only)
    plans = plans_of(request)[1]
    plain = [p for p in plans if not p.in_tile_loops]
    assert {family_of(p) for p in plain} == {ADAPTED, ON_THE_WAY}
    assert len(plain) == MOST_IN_LOOPS, "probabilities as stored operands do not crowd out those of tile loops"
    tiled = [p for p in plans if p.in_tile_loops]
    assert len(tiled) > len(plain)
    assert with_plain(tiled, plans, len(plans)) == [*tiled, plain[0]]
    assert with_plain(tiled, tiled, len(plans)) == tiled
    assert with_plain(plans, plans, len(plans)) == plans
    several = [p for p in tiled if family_of(p) == ONE_PASS]
    assert with_plain(several, plans, len(several)) == [*several[:-1], plain[0]]  # the last of several makes room
