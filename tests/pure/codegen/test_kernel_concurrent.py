"""Copies under way, barriers and roles in the interpreter: right in every order, or found out."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel

from autosched.codegen.interpret.concurrent import DeadlockError
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.interpret.storage import RaceError
from autosched.codegen.tree.kernel import (
    Assign,
    AsyncCopies,
    BarrierArrive,
    BarrierWait,
    Buffer,
    For,
    Function,
    If,
    Kernel,
    KernelError,
    Stmt,
    WaitCopies,
    WarpSpecialize,
)
from autosched.codegen.tree.text import print_kernel
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Read
from autosched.logic import Const, Int, Var

N, SLOTS = 6, 2
F32 = DTYPES["f32"]
PROGRAM = parse(f"def copy(A: f32[{N}], B: f32[{N}]):\n    for i in range({N}):\n        B[i] = A[i]\n")
AT, ZERO = Var("i"), Const(0)


def kernel(*body: Stmt, slots: int = SLOTS) -> Kernel:
    buffers = {n: Buffer(n, F32, (N,), "global", n) for n in ("A", "B")}
    buffers["S"] = Buffer("S", F32, (slots,), "shared")
    block = For("b", ZERO, Const(1), body, "block.x")
    found = Kernel("copy", PROGRAM, buffers, (), Function("main", ("A", "B"), (block,)), isa="cuda")
    check_kernel(found)
    return found


def fetch(slot: Int, at: Int) -> Assign:
    return Assign("S", (slot,), Read("A", (at,), F32))


def leave(slot: Int, at: Int) -> Assign:
    return Assign("B", (at,), Read("S", (slot,), F32))


def right(found: Kernel, seeds: int = 12) -> int:
    """In how many of the orders the kernel copies."""
    a = np.arange(N, dtype=np.float32) + 1
    good = 0
    for seed in range(seeds):
        with contextlib.suppress(KernelError):
            good += np.array_equal(run_kernel(found, {"A": a}, seed=seed)["B"], a)
    return good


def alone(*body: Stmt) -> For:
    return For("thread", ZERO, Const(1), body, "thread")


def test_a_group_has_landed_after_its_wait() -> None:
    def pipelined(pending: int) -> Kernel:
        start = AsyncCopies((fetch(AT % SLOTS, AT),), "", ZERO)
        ahead = AsyncCopies((fetch((AT + 1) % SLOTS, AT + 1),), "", ZERO)
        first = For("i", ZERO, Const(1), (start,), "serial")
        loop = For("i", ZERO, Const(N - 1), (ahead, WaitCopies(pending), leave(AT % SLOTS, AT)))
        last = For("i", Const(N - 1), Const(N), (WaitCopies(0), leave(AT % SLOTS, AT)))
        return kernel(alone(first, loop, last))

    assert right(pipelined(1)) == 12
    assert right(pipelined(2)) < 12  # one more may be under way than the slots hold


def test_a_copy_that_nobody_waits_for() -> None:
    start = AsyncCopies((fetch(ZERO, AT),), "", ZERO)
    with pytest.raises(KernelError, match="6 copies or calls were started and never waited for"):
        run_kernel(kernel(alone(For("i", ZERO, Const(N), (start,)))), {"A": np.zeros(N, np.float32)})


def roles(times_full: Int, times_empty: Int, signals: bool = True) -> Kernel:
    slot = AT % SLOTS
    copy = AsyncCopies((fetch(slot, AT),), "full", slot)
    producer = For("i", ZERO, Const(N), (BarrierWait("empty", slot, times_empty, times_empty - 1), copy))
    arrive: tuple[Stmt, ...] = (BarrierArrive("empty", slot),) if signals else ()
    full = BarrierWait("full", slot, times_full, times_full - 1)
    consumer = For("i", ZERO, Const(N), (full, leave(slot, AT), *arrive))
    return kernel(WarpSpecialize(("producer", "consumer"), ((producer,), (consumer,))))


def test_roles_meet_at_barriers_in_every_order() -> None:
    found = roles(AT // SLOTS + 1, AT // SLOTS)
    assert right(found) == 12
    text = print_kernel(found)
    assert "beside, as producer:" in text
    assert "then signal full[i % 2]" in text


def test_a_barrier_awaited_too_little_is_found() -> None:
    assert right(roles(AT // SLOTS, AT // SLOTS)) < 12  # reads what the slot held before
    assert right(roles(AT // SLOTS + 1, ZERO)) < 12  # overwrites what was not read


def test_a_deadlock_is_told() -> None:
    before = threading.active_count()
    with pytest.raises(DeadlockError, match=r"producer awaits empty\[0\] x 1; consumer awaits full\[0\] x 2"):
        run_kernel(roles(AT // SLOTS + 1, AT // SLOTS, signals=False), {"A": np.zeros(N, np.float32)})
    assert threading.active_count() == before, "no role is left behind"
    lonely = kernel(BarrierWait("full", ZERO, Const(1), ZERO))
    with pytest.raises(DeadlockError, match="no copy is under way"):
        run_kernel(lonely, {"A": np.zeros(N, np.float32)})


def test_workers_of_a_block_race_in_shared_memory() -> None:
    both = For("thread", ZERO, Const(2), (fetch(ZERO, Var("thread")),), "thread")
    with pytest.raises(RaceError, match=r"S\[0\]"):
        run_kernel(kernel(both), {"A": np.zeros(N, np.float32)})


def met_later(places: int, arrivals: int = 1) -> Kernel:
    """Two workers, each of which reads what the other wrote an iteration before, from so many places in turn."""
    worker, before = Var("thread"), AT - 1
    mine = Assign("S", (AT % places * 2 + worker,), Read("A", (AT,), F32))

    def theirs(at: Int) -> Stmt:
        other = Read("S", (at % places * 2 + 1 - worker,), F32)
        return If((at % 2).eq(worker), (Assign("B", (at,), other),))

    def both(*body: Stmt, meet: bool = False) -> For:
        return For("thread", ZERO, Const(2), body, "thread", no_barrier=not meet)

    come = tuple(BarrierArrive("come", AT % SLOTS, own=True) for _ in range(arrivals))
    passed = (AT + 1) // SLOTS
    wait = BarrierWait("come", (AT + 1) % SLOTS, passed, passed - 1)
    loop = For("i", ZERO, Const(N), (both(mine), *come, wait, If(AT > 0, (both(theirs(before)),))))
    return kernel(loop, both(theirs(Const(N - 1)), meet=True), slots=2 * places)


def test_workers_may_meet_an_iteration_later() -> None:
    """One may write while another still reads what it had three iterations before."""
    assert right(met_later(4)) == 12
    for fewer in (1, 2, 3):
        with pytest.raises(RaceError, match="thread"):
            run_kernel(met_later(fewer), {"A": np.zeros(N, np.float32)})
    with pytest.raises(RaceError, match="thread"):  # waits pass too early
        run_kernel(met_later(4, arrivals=2), {"A": np.zeros(N, np.float32)})


def test_roles_stand_outside_loops_over_workers() -> None:
    with pytest.raises(KernelError, match="awaited inside a loop over workers"):
        kernel(alone(BarrierWait("full", ZERO, Const(1), ZERO)))
    with pytest.raises(KernelError, match="roles inside a loop over workers"):
        kernel(alone(WarpSpecialize(("one",), ((fetch(ZERO, ZERO),),))))
