"""A lane reads registers of its own warp: the interpreter and the CUDA printer refuse the same assignments."""

from __future__ import annotations

import numpy as np
import pytest

from autosched.codegen.cuda import print_cuda
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.tree.kernel import Assign, Buffer, For, Function, Kernel, KernelError, Lane, Stmt
from autosched.errors import UsageError
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Read
from autosched.logic import Const, Int, Var
from autosched.machine.catalogue import load_target

F32, E, W = DTYPES["f32"], Var("e"), Var("w")
PROGRAM = parse("def f(A: f32[128], C: f32[128]):\n    for i in range(128):\n        C[i] = A[i]\n")
THREADS = {"warp": 32, "warpgroup": 128}


def kernel(worker: str, run: int, place: Int, single: bool = False) -> Kernel:
    """Registers of one worker, of `run` neighbours a lane, from A; C gets what lies at `place` of them."""
    width = THREADS[worker] * run
    buffers = {n: Buffer(n, F32, (128,), "global", n) for n in "AC"}
    buffers["R"] = Buffer("R", F32, (1, width), "register", elements_per_thread=run)
    lane = Lane("e", width)
    moved: tuple[Stmt, ...]
    if single:  # every lane has the number
        buffers["T"] = Buffer("T", F32, (1, 1), "register")
        moved = (Assign("T", (W, Const(0)), Read("R", (W, place), F32)),)
        moved += (Assign("C", (E,), Read("T", (W, Const(0)), F32), lane),)
    else:
        buffers["T"] = Buffer("T", F32, (1, width), "register", elements_per_thread=run)
        moved = (Assign("T", (W, E), Read("R", (W, place), F32), lane), Assign("C", (E,), Read("T", (W, E), F32), lane))
    body = (Assign("R", (W, E), Read("A", (E,), F32), lane), *moved)
    block = For("b", Const(0), Const(1), (For("w", Const(0), Const(1), body, worker),), "block.x")
    return Kernel("f", PROGRAM, buffers, (), Function("main", ("A", "C"), (block,)), isa="cuda")


def found(of: Kernel) -> np.ndarray:
    given = np.arange(128, dtype=np.float32)
    return run_kernel(of, {"A": given})["C"]


def printed(of: Kernel) -> str:
    return print_cuda(of, load_target("nvidia-h200")).text


@pytest.mark.parametrize("worker", THREADS)
def test_partners_within_a_warp(worker: str) -> None:
    of = kernel(worker, 1, E // 16 * 16 + (E + 8) % 16)
    width = THREADS[worker]
    at = np.arange(width)
    assert found(of)[:width].tolist() == (at ^ 8).tolist()
    assert "of_partner(" in printed(of)


@pytest.mark.parametrize("apart", [32, 64])
def test_partners_in_other_warps_are_refused(apart: int) -> None:
    of = kernel("warpgroup", 1, E // (2 * apart) * (2 * apart) + (E + apart) % (2 * apart))
    with pytest.raises(KernelError, match="R is read from another warp's registers"):
        found(of)
    with pytest.raises(UsageError, match="another warp's registers"):
        printed(of)


def test_one_lane_for_all_of_its_warp_only() -> None:
    inside = kernel("warp", 1, Const(5), single=True)
    assert found(inside)[:32].tolist() == [5.0] * 32
    assert "of_lane(" in printed(inside)
    for lane in (5, 70):  # of lane 5 each warp would get its own
        across = kernel("warpgroup", 1, Const(lane), single=True)
        with pytest.raises(KernelError, match="another warp's registers"):
            found(across)
        with pytest.raises(UsageError, match="another warp's registers"):
            printed(across)
