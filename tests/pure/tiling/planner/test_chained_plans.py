"""Which plans have a chain, over which axis, and what is left to decide of its parts."""

from __future__ import annotations

import numpy as np
import pytest
from support.plans import machine, plans_of
from support.programs.chained import CHAINED, MLP, chained_plans

from autosched.costmodel.analytic.clock import clock
from autosched.device.simulator.verify.smaller import cut_plan
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tiling.planner.nests import MOST_PLANS
from autosched.tiling.plans.chain import Handed
from autosched.tiling.steps.cpu.pack import DIRECT


def changed(old: str, new: str) -> Program:
    assert old in MLP
    return parse(MLP.replace(old, new), filename="f.py")


@pytest.mark.parametrize(
    ("name", "handed"),
    [
        ("mlp", ("H", "R")),
        ("kept", ()),
        ("three", ("A", "B")),
        ("turned", ("H",)),
        ("batches", ("S",)),
    ],
)
def test_products_of_products_are_chains(name: str, handed: tuple[str, ...]) -> None:
    plans = chained_plans(CHAINED[name], machine())
    assert plans
    for plan in plans:
        assert plan.chain is not None
        assert {h.tensor for h in plan.chain.handed} == {*handed}
        assert [p.nest.stage.name for p in plan.chained_parts] == [p.nest.stage.name for p in plan.tensor_parts]
    dimensions = {h.tensor: h.dimension for h in plans[0].chain.handed} if plans[0].chain else {}
    assert dimensions == {h: {"turned": 1, "batches": 1}.get(name, 0) for h in handed}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("R[i, p] * W2", "R[m - 1 - i, p] * W2"),  # another row
        ("R[i, p] * W2", "R[0, p] * W2"),
        ("R[i, p] * W2", "X[i, p % k] * W2"),  # nothing is handed on
        ("for i, j in grid(m, n):\n        Y[i, j]", "for i, j in grid(m - 1, n):\n        Y[i, j]"),  # other loops
        ("for i, j in grid(m, n):\n        Y[i, j]", "for j in range(n):\n      for i in range(m):\n        Y[0, j]"),
        ("m=50", "m=8"),  # no more rows than a tile has
    ],
)
def test_other_programs_are_none(old: str, new: str) -> None:
    assert not chained_plans(changed(old, new), machine())


def test_plans_without_a_chain_stay_as_they_are() -> None:
    program = CHAINED["mlp"]
    plans = plans_of(program, machine(), threads=2)
    assert len(plans) <= MOST_PLANS
    assert [p.chain for p in plans[: -len(chained_plans(program, machine()))]].count(None) == len(plans) - 2
    for plan in plans:
        assert (plan.chain is not None) == ("in a chain over i" in plan.name)
        assert any(d.name.startswith("chain.") for d in plan.space.decisions) == (plan.chain is not None)


def test_what_is_handed_on_is_read_where_it_lies() -> None:
    for plan in chained_plans(CHAINED["mlp"], machine()):
        domains = {d.name: d.domain for d in plan.space.decisions}
        assert domains["Y.pack_a"] == (DIRECT,)
        assert not [n for n in domains if n.endswith((".threads", ".split")) and not n.startswith("chain.")]
        values = plan.space.values(plan.space.sample(500, np.random.default_rng(0)))
        assert (values["chain.rows"] % values["H.reg_i"] == 0).all()
        assert (values["H.threads"] == values["chain.threads"]).all()
        assert (values["chain.threads"] <= values["chain.tiles"]).all()


def test_a_tile_moves_no_more_than_memory() -> None:
    """By the clock, in rows that differ in the place alone: and less, where the whole would outgrow a cache."""
    program = parse(MLP.replace("m=50, k=24, h=40, n=36", "m=8192, k=64, h=1024, n=64"), filename="f.py")
    (plan, *_) = chained_plans(program, machine(), threads=1)
    ids = plan.space.sample(2000, np.random.default_rng(0))
    rows = [plan.space.schedule(int(i)).values for i in ids]
    tile = np.array([plan.space.row_of(r | {"chain.place": 0}) for r in rows])
    memory = np.array([plan.space.row_of(r | {"chain.place": 1}) for r in rows])
    less, more = (clock(plan, plan.space.values(i))["total"] for i in (tile, memory))
    assert (less <= more * (1 + 1e-9)).all()
    assert less.min() < 0.98 * more.min()


def test_a_smaller_program_has_the_chain_too() -> None:
    (plan, *_) = chained_plans(CHAINED["mlp"], machine())
    assert plan.chain is not None
    smaller = cut_plan(plan, parse(MLP.replace("m=50", "m=30"), filename="f.py"), 2)
    assert smaller.chain is not None
    assert smaller.chain.extent == 30
    assert smaller.chain.handed == (Handed("H", 0), Handed("R", 0))
    assert {d.name for d in smaller.space.decisions} == {d.name for d in plan.space.decisions}
    with pytest.raises(ValueError, match="no chain is left"):
        cut_plan(plan, parse(MLP.replace("m=50", "m=7"), filename="f.py"), 2)
