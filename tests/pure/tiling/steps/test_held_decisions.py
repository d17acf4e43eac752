"""At which values decisions are held where a chain's nests span more rows than an id numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.plans import machine, plans_of

from autosched.ir import parse, workload
from autosched.machine.target import Target
from autosched.tiling.plans.plan import Plan
from autosched.tiling.step import Decision
from autosched.tiling.steps.cpu.prefetch import FAR, NEXT, NO

CHAIN = "swiglu"
FMA = ("x86/vfmadd.f32.zmm",)


def chain_of(k: int, f: int, target: Target | None = None) -> Plan:
    """Three products whose spaces are too large together."""
    return next(p for p in plans_of(workload(CHAIN, m=96, k=k, f=f, n=768), target, only=FMA))


def unrolls(plan: Plan) -> dict[str, Decision]:
    """By tensor."""
    found = (d for d in plan.space.decisions if d.name.rpartition(".")[2] == "unroll")
    return {d.name.rpartition(".")[0]: d for d in found}


def test_it_is_held_at_what_costs_least() -> None:
    """At 1 this chain ran at 0.88 of its products' speed on an Emerald Rapids, at 4 at 0.98."""
    plan = chain_of(768, 2048)
    assert len(plan.tensor_parts) == 3
    assert {tensor: d.domain for tensor, d in unrolls(plan).items()} == {"G": (4,), "H": (4,), "Y": (4,)}


@pytest.mark.parametrize(("k", "f", "up", "down"), [(770, 2048, 2, 4), (771, 2046, 1, 2)])
def test_each_nest_holds_what_divides_its_own_depth(k: int, f: int, up: int, down: int) -> None:
    plan = chain_of(k, f)
    assert {tensor: d.domain for tensor, d in unrolls(plan).items()} == {"G": (up,), "H": (up,), "Y": (down,)}
    assert plan.space.few.size


def values_lost(plan: Plan) -> Iterator[tuple[str, int]]:
    """Values of decisions that no legal row has beside the unrolling that is held."""
    for tensor, held in unrolls(plan).items():
        for d in plan.space.decisions:
            if d.name.startswith(f"{tensor}.block"):
                rows = (plan.space.row_of({**plan.space.schedule(int(r)).values, d.name: v})
                        for v in d.domain for r in plan.space.few)  # fmt: skip
                broken = {r.name for row in rows for r in plan.space.violated(row)}
                if held.name in broken:
                    yield d.name, held.domain[0]


@pytest.mark.parametrize("k", [768, 770])
def test_no_block_is_ruled_out_by_it(k: int) -> None:
    assert not list(values_lost(chain_of(k, 2048)))


def test_what_streams_is_asked_for_far_ahead() -> None:
    """Not at all cost a plan with the gate behind its product its place."""
    plan = chain_of(768, 2048)
    asked = {d.name: d.domain for d in plan.space.decisions if d.name.endswith(".prefetch")}
    held = {name for name, domain in asked.items() if len(domain) == 1}
    assert held
    assert all(asked[name] == (FAR,) for name in held)
    assert all({NO, FAR} <= {*asked[name]} for name in asked.keys() - held)


def test_a_single_product_keeps_its_choices() -> None:
    plan, *_ = plans_of(workload("matmul", m=96, n=768, k=2048), only=FMA)
    assert plan.space.decision("unroll").domain == (1, 2, 4)
    assert plan.space.decision("prefetch").domain == (NO, FAR, NEXT)


WINDOWS = """
def windows(X: f32[h, w, c], D: const[f32[3, 4, c]], Y: f32[a, b, c], *, h=34, w=35, c=64, a=32, b=32):
    for i, j, q in grid(a, b, c):
        Y[i, j, q] = 0
        for y, x in grid(3, 4):
            Y[i, j, q] += X[i + y, j + x, q] * D[y, x, q]
"""


def test_it_is_held_at_one_where_steps_share_loads() -> None:
    plan, *_ = plans_of(parse(WINDOWS), machine(), only=FMA)
    (own,) = unrolls(plan).values()
    assert len(plan.space.decision("loads").domain) > 1
    assert (own.domain, own.held) == ((1, 2, 4), 1)
