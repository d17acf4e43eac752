"""States of an accelerator: loaded as far out as they stay the same, and read only where that is proved."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from fuzz.stationary import loads_in, search
from support.stationary import ARRAY, LOADS, PRODUCT, held_plan, held_row

from autosched.codegen.analysis.held_states import StateError, prove_states
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.interpret.storage import UninitialisedError
from autosched.codegen.lower import lower
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import Assign, For, IntrinsicCall, Kernel, Stmt
from autosched.codegen.tree.text import print_kernel
from autosched.device.simulator import SimulatorDevice
from autosched.ir.value import Read
from autosched.logic import Const, Var
from autosched.tiling.candidate import Candidate

TILES_I, TILES_J, TILES_P = 12, 2, 5


def kernel_of(order: str, i: int, j: int, p: int) -> Kernel:
    plan = held_plan()
    return lower(plan, plan.space.schedule(held_row(plan, order, i, j, p)))


@pytest.mark.parametrize(
    ("order", "blocks", "loads"),
    [
        ("j p i", (1, 1, 1), TILES_J * TILES_P),  # once for each tile of weights: all rows pass by
        ("i j p", (1, 1, 1), TILES_I * TILES_J * TILES_P),
        ("i j p", (4, 1, 1), 3 * TILES_J * TILES_P),  # once for four tiles of rows
        ("i j p", (4, 2, 5), 3 * TILES_J * TILES_P),  # loops inside a block have the rows innermost
        ("p i j", (4, 1, 2), 3 * TILES_J * TILES_P),  # blocks of 2, 2 and 1 tiles along p
        ("p j i", (4, 1, 1), TILES_J * TILES_P),
    ],
)
def test_blocks_and_their_order_say_how_often_weights_are_loaded(
    order: str, blocks: tuple[int, int, int], loads: int
) -> None:
    plan = held_plan()
    row = held_row(plan, order, *blocks)
    kernel = lower(plan, plan.space.schedule(row))
    assert plan.space.values([row])["loads_b"][0] == loads_in(kernel) == loads
    assert prove_states(kernel)


def test_a_load_stands_in_front_of_the_loop_over_rows() -> None:
    text = print_kernel(kernel_of("j p i", 1, 1, 1))
    load, loop, call = (text.index(s) for s in ("weights[0, :64] =", "for ib in", "<- held/rows(a=a_reg, b=weights[0]"))
    assert text.index("for pb in") < load < text.rindex("for ib in", 0, call)
    assert loop < call
    assert re.search(r"weights +s8\[1, 64\] +state", text)


def changed(body: tuple[Stmt, ...], out: bool = False, moved: bool = False) -> tuple[Stmt, ...]:
    """The statements with the load of weights taken `out`, or `moved` in front of the loop over p."""
    made: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            inside = changed(stmt.body, out, moved)
            first = tuple(s for s in inside if moved and isinstance(s, Assign) and s.buffer == "weights")
            made += bind(first, {stmt.var: Const(0)})
            made.append(replace(stmt, body=tuple(s for s in inside if s not in first)))
        elif not (out and isinstance(stmt, Assign) and stmt.buffer == "weights"):
            made.append(stmt)
    return tuple(made)


def with_body(kernel: Kernel, body: tuple[Stmt, ...]) -> Kernel:
    return replace(kernel, main=replace(kernel.main, body=body))


def test_a_state_that_is_read_before_it_is_set_is_refused_with_its_place_and_the_mend() -> None:
    kernel = kernel_of("j p i", 1, 1, 1)
    never = with_body(kernel, changed(kernel.main.body, out=True))
    with pytest.raises(StateError) as refused:
        prove_states(never)
    said = str(refused.value)
    assert "the state weights is read before it is set: held/rows takes b from it" in said
    assert "inside: jb, pb, ib" in said
    assert "help: load B_scratch[0, jb, pb, e] into weights in front of the call, or of a loop around it" in said
    arrays = {"A": np.ones((24, 40), np.int8), "B": np.ones((40, 16), np.int8)}
    with pytest.raises(UninitialisedError, match="the state weights is read before it is set"):
        run_kernel(never, arrays)


def test_a_state_that_holds_other_weights_is_refused_with_a_place_where_it_does() -> None:
    kernel = kernel_of("j p i", 1, 1, 1)
    early = with_body(kernel, changed(kernel.main.body, moved=True))
    with pytest.raises(StateError) as refused:
        prove_states(early)
    said = str(refused.value)
    assert "holds B_scratch[0, 0, 0, e], and held/rows means B_scratch[0, jb, pb, e] by b: not the same at" in said


def written_again(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with another copy into the scratchpad of weights behind their load."""
    made: list[Stmt] = []
    for stmt in body:
        made.append(replace(stmt, body=written_again(stmt.body)) if isinstance(stmt, For) else stmt)
        if isinstance(stmt, Assign) and stmt.buffer == "weights" and isinstance(stmt.value, Read):
            made.append(Assign("B_scratch", (Const(0),) * 3 + (Var("e"),), stmt.value, stmt.lane))
    return tuple(made)


def test_what_a_load_read_must_stay_until_the_last_call() -> None:
    kernel = kernel_of("j p i", 1, 1, 1)
    with pytest.raises(StateError, match="before it is set"):
        prove_states(with_body(kernel, written_again(kernel.main.body)))


def test_a_load_under_another_name_fills_the_same_state() -> None:
    """Two buffers of one state are one array: the second load takes the place of the first."""

    def twice(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        made: list[Stmt] = []
        for stmt in body:
            made.append(replace(stmt, body=twice(stmt.body)) if isinstance(stmt, For) else stmt)
            if isinstance(stmt, Assign) and stmt.buffer == "weights":
                made.append(replace(stmt, buffer="weights_2"))
        return tuple(made)

    kernel = kernel_of("j p i", 1, 1, 1)
    kernel = with_body(kernel, twice(kernel.main.body))
    buffers = {**kernel.buffers, "weights_2": replace(kernel.buffers["weights"], name="weights_2")}
    with pytest.raises(StateError, match="before it is set"):
        prove_states(replace(kernel, buffers=buffers))


def test_a_call_that_does_not_say_what_it_means_is_refused() -> None:
    def unsaid(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        made: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                made.append(replace(stmt, body=unsaid(stmt.body)))
            elif isinstance(stmt, IntrinsicCall):
                made.append(replace(stmt, operands={n: replace(r, holds=None) for n, r in stmt.operands.items()}))
            else:
                made.append(stmt)
        return tuple(made)

    kernel = kernel_of("j p i", 1, 1, 1)
    with pytest.raises(StateError, match="does not say what it means by b"):
        prove_states(with_body(kernel, unsaid(kernel.main.body)))


def test_two_products_load_one_state_in_turn() -> None:
    two = PRODUCT.replace("C: s32[24, 16]", "D: s8[16, 8], C: s32[24, 16], E: s32[40, 8]") + """
    for i, j in grid(40, 8):
        E[i, j] = 0
        for p in range(16):
            E[i, j] += s32(B[i, p]) * s32(D[p, j])
"""
    plan = held_plan(program=two)
    assert plan.intrinsics == ("held/rows", "held/rows")
    device = SimulatorDevice(target=plan.target)
    for row in map(int, plan.space.sample(2, np.random.default_rng(0))):
        kernel = lower(plan, plan.space.schedule(row))
        assert {b.origin for b in kernel.buffers.values() if b.scope == "state"} == {"weights"}
        measured = device.measure(device.build(Candidate(plan, row)))
        assert measured.ok, measured.message
        found = plan.space.values([row])
        loads = sum(int(found[p.names("loads_b")][0]) for p in plan.tensor_parts)
        assert loads_in(kernel) == loads
        assert measured.extra["model_s"]["loads"] == pytest.approx(loads * 8e-9, rel=0.02)


def test_a_part_of_a_state_is_loaded_in_several_issues() -> None:
    halves = LOADS.replace("s8[8, 8]", "s8[4, 8]").replace("grid(8, 8)", "grid(4, 8)")
    plan = held_plan(ARRAY + halves)
    (operand,) = plan.tensor_parts[0].nest.intrinsic.held
    loading = plan.units.loading(plan.target, operand)
    assert loading is not None
    assert loading.cycles(operand.elements) == 2 * 8


@pytest.mark.parametrize(("programs", "least"), [(4, 12), pytest.param(8, 40, marks=pytest.mark.slow)])
def test_random_products_and_arrays(programs: int, least: int) -> None:
    """`python -m tests.fuzz.stationary --programs 500` looks at more of them."""
    count, wrong = search(0, programs)
    assert not wrong, wrong
    assert count["proved"] >= count["kernels"] >= least
    assert count["refused"] > 0
