"""What the first register tile computes of an operand in the load, and leaves for the others."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.once import machine, rows_with_one, search
from support.cards.block_chains import CATALOGUE

from autosched.codegen.lower import lower
from autosched.codegen.tree.text import print_kernel
from autosched.costmodel.analytic.clock import clock
from autosched.ir import workload
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan


def on_the_way(m: int) -> Plan:
    """The first plan of a product by 8-bit weights that computes these in the load."""
    target = machine("intel-sapphire-rapids")
    offered = usable(CATALOGUE, target, "simulator", ["x86/vfmadd.f32.zmm"])
    program = workload("matmul_int8", m=m, n=64, k=64, g=32)
    found = plan_program(program, target, CATALOGUE, offered, numerics="rescaled").every
    return next(p for p in found if "in the load" in p.name and "defer" not in p.name)


def chosen(plan: Plan, **values: int | str) -> dict[str, int | str]:
    base: dict[str, int | str] = {d.name: d.domain[0] for d in plan.space.decisions}
    names = {d.name.rpartition(".")[2]: d.name for d in plan.space.decisions}
    return base | {names[k]: v for k, v in values.items()}


ONCE = {"reg_i": 2, "reg_j": 2, "inner": 0, "block_i": 0, "once_b": 1}


def test_one_tile_converts_for_all() -> None:
    plan = on_the_way(5)
    row = plan.space.row_of(chosen(plan, **ONCE))
    assert not plan.space.violated(row)
    text = print_kernel(lower(plan, plan.space.schedule(row)))
    assert text.count("bits_f32(u32(W_panel") == 1, "one tile converts"
    assert text.count("b_left[pg * 32 + (pu + pv), jr, :16] = b_reg") == 1
    assert text.count("b_reg[jr, :16] = b_left") == 2, "the second tile of two rows, and the last one of one"


@pytest.mark.sampled("values0-innermost", "values1-in one block")
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"inner": 1}, "innermost"),
        ({"reg_i": 1, "block_i": 2}, "in one block"),
        ({"reg_i": 5}, "one tile computes b"),
    ],
)
def test_rules(values: dict[str, int], said: str) -> None:
    plan = on_the_way(5)
    row = plan.space.row_of(chosen(plan, **(ONCE | values)))
    assert any(said in str(v) for v in plan.space.violated(row))


def test_the_clock_counts_conversions_of_one_tile() -> None:
    plan = on_the_way(64)
    rows = [plan.space.row_of(chosen(plan, **(ONCE | {"reg_i": 8, "once_b": k}))) for k in (0, 1)]
    each, once = clock(plan, plan.space.values(np.array(rows)))["compute"].tolist()
    assert once < 0.9 * each


@pytest.mark.parametrize(("programs", "least"), [(4, 6), pytest.param(20, 45, marks=pytest.mark.slow)])
def test_random_products(programs: int, least: int) -> None:
    """`python -m tests.fuzz.once --programs 500` looks at more of them."""
    count, wrong = search(0, programs)
    assert not wrong, wrong
    assert count["kernels"] >= least


def test_rows_of_the_fuzzer_leave_something() -> None:
    assert rows_with_one(on_the_way(5), 2, 0)
