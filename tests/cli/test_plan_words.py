"""What `tune` and `show` say of a plan beside its name: other stages, work under a mask, the loops' bounds."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from cli.conftest import Cli
from support.cards.block_chains import F16, H200, BlockChain, holding
from support.cards.gpu_plans import CATALOGUE

from autosched import api
from autosched.cli.answers.fusion import fusion_lines, other_lines, serial_lines, work_lines
from autosched.cli.answers.under_masks import masked_lines, useful_json
from autosched.codegen.lower import lower
from autosched.codegen.tree.text import print_kernel
from autosched.ir import parse, workload
from autosched.report.plan_text import LoopBounds, loop_words
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of, usable
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan, ScalarPart
from autosched.tiling.variants.one_pass import one_pass_programs

TRIANGLE = """
def tri(A: f32[n, k], B: f32[n, k], C: f32[n, n], R: f32[n], *, n=64, k=16):
    for i, j in grid(n, n):
        if j <= i:
            C[i, j] = 0
            for p in range(k):
                C[i, j] += A[i, p] * B[j, p]
    for i in range(n):
        R[i] = -inf
        for p in range(k):
            R[i] = max(R[i], A[i, p])
"""

MASKED = """
def masked(A: f32[32, 32], B: f32[32, 64], C: f32[32, 64]):
    for i, j in grid(32, 64):
        C[i, j] = 0
        for p in range(32):
            if p <= i:
                C[i, j] += A[i, p] * B[p, j]
"""


def product_of(text: str) -> Plan:
    """The plan whose name has the product alone, a register along j."""
    plans = plans_of(TuneRequest(api.parse(text), api.target("x86-avx512"), device="cpu"))[1]
    return next(plan for plan in plans if plan.name.replace("C.2", "C") == "C: x86/vfmadd.f32.zmm(i←j)")


def row_with(plan: Plan, rows: int) -> int:
    """A legal row with register tiles of so many rows and of one vector."""
    found = (int(row) for row in plan.space.sample(4000, np.random.default_rng(0)))
    decided = ((row, plan.space.schedule(row).named) for row in found)
    return next(row for row, d in decided if (d["C.2.reg_i"], d["C.2.reg_j"]) == (rows, 1))


def test_stages_that_the_name_leaves_out_are_on_a_line() -> None:
    plan = product_of(TRIANGLE)
    assert "R" not in plan.name
    assert other_lines(plan) == ["others   reductions R, elementwise C"]


@pytest.mark.parametrize("rows", [1, 4, 8])
def test_the_share_of_a_masked_product_that_is_useful(rows: int) -> None:
    plan = product_of(TRIANGLE)
    (said,) = masked_lines(plan, row_with(plan, rows))
    below = np.tri(64, dtype=bool)
    tiles = below.reshape(64 // rows, rows, 4, 16).any(axis=(1, 3))  # a tile's vector is computed if any element counts
    useful = below.sum() / (tiles.sum() * rows * 16)
    what = f"about {useful:.0%} of what x86/vfmadd.f32.zmm computes of C.2 is within the mask"
    assert said == f"{what}, {1 - useful:.0%} beyond"
    assert useful_json(plan, row_with(plan, rows)) == {
        "useful": {"C.2": 1.0},
        "useful_under_mask": {"C.2": round(useful, 6)},
    }


def test_the_share_of_a_masked_product_on_a_gpu() -> None:
    """Blocks of keys are computed whole: what the window leaves of them."""
    program = workload("attention", mask="window", h=1, n=512, l=512, d=64, window=100, t="f16")
    target, catalogue = api.target("nvidia-h200"), CATALOGUE
    found = usable(catalogue, target, "simulator", ("cuda/mma.m16n8k16.f16.f16.f32",))
    (variant,) = one_pass_programs(program, found, "rescaled", [(64, 64)], one_loop=True)
    plan = plan_program(variant.program, target, catalogue, found, numerics="rescaled").plans[0]
    row = int(plan.space.sample(1, np.random.default_rng(0))[0])
    blocks = [range(max(0, 64 * tile - 99) // 64, min((64 * tile + 127) // 64, 8)) for tile in range(8)]
    within = sum(min(i + 1, 100) for i in range(512)) / (sum(map(len, blocks)) * 64 * 64)
    shares = useful_json(plan, row)["useful_under_mask"]
    assert shares["S_block in j_block"] == pytest.approx(within, abs=0.02)
    assert any(line.endswith(f"of S_block in j_block is within the mask, {1 - shares['S_block in j_block']:.0%} beyond")
               for line in masked_lines(plan, row))  # fmt: skip


def test_without_a_mask_nothing_is_said() -> None:
    plan = product_of(TRIANGLE.replace("if j <= i:", "if j <= i + 64:"))
    assert masked_lines(plan, int(plan.space.sample(1, np.random.default_rng(0))[0])) == []
    assert work_lines(plan.program) == []


SERIAL = """
def serial(X: f32[m, k], W: f32[k, f], D: f32[f, n], Y: f32[m, n], *, m=128, tile=32, k=64, f=128, n=64):
    P: f32[P_SHAPE]
    for i_tile in range(m // tile):
        for i, j in grid(tile, f):
            P[AT] = 0
            for p in range(k):
                P[AT] += X[i_tile * tile + i, p] * W[p, j]
        for i, c in grid(tile, n):
            Y[i_tile * tile + i, c] = 0
            for j in range(f):
                Y[i_tile * tile + i, c] += max(P[AT], 0) * D[j, c]
"""


@pytest.mark.parametrize(("target", "threads", "who"), [("x86-avx512", 2, "thread"), ("nvidia-h200", 1, "block")])
def test_why_one_worker_has_all_tiles(target: str, threads: int, who: str) -> None:
    def told(shape: str, at: str) -> list[str]:
        program = api.parse(SERIAL.replace("P_SHAPE", shape).replace("AT", at))
        plans = plans_of(TuneRequest(program, api.target(target), threads=threads))[1]
        return [line for plan in plans[:1] for line in serial_lines(plan)]

    (said,) = told("tile, f", "i, j")
    assert said.startswith(f"serial   i_tile: one {who} goes through all of it: P[i, j], written at i_tile=")
    assert said.endswith("; where no iteration needs what another leaves there, P[i_tile, …] sets them apart")
    assert told("m // tile, tile, f", "i_tile, i, j") == []


@pytest.mark.slow
def test_what_warps_hold_in_registers_is_not_said_to_be_shared() -> None:
    chain = BlockChain("mlp", H200, dict(F16))
    plan, row = chain.plan, holding(chain.plan, 1)[0]
    held, memory = fusion_lines(plan, lower(plan, plan.space.schedule(row)), chain.program)
    assert held == "held     H 16x32, P 16x32: 3 KiB for each block, in registers"
    assert memory.startswith("memory   0 bytes")
    rows = (int(row) for row in plan.space.thinned(64, np.random.default_rng(0)))
    named = ((row, plan.space.schedule(row).named) for row in rows)
    row = next(r for r, d in named if (d["i_tile.f_block.held_rows"], d["i_tile.place_P"]) == ("in memory", "shared"))
    held, shared, _ = fusion_lines(plan, lower(plan, plan.space.schedule(row)), chain.program)
    assert held == "held     H 16x32: 2 KiB for each block, in registers"
    assert shared == "shared   P 16x32: 1 KiB for each block"


@pytest.mark.slow
def test_what_a_second_place_of_held_tensors_is_for() -> None:
    """Scores, of which the rows that are computed as written use one column at a time."""
    program, target = workload("attention_rounded", h=1, n=128, l=128, d=32, mask="causal"), api.target("nvidia-h200")
    found = usable(CATALOGUE, target, "simulator", None)
    (variant,) = one_pass_programs(program, found, "real", [(64, 64)], one_loop=True)
    plans = plan_program(variant.program, target, CATALOGUE, found, numerics="real").plans
    plan = next(p for p in plans if holding(p, 1))
    kernel = lower(plan, plan.space.schedule(holding(plan, 1)[0]))
    held, shared = (line for line in fusion_lines(plan, kernel, program) if line.startswith(("held", "shared")))
    assert held.startswith("held     S_block 64x64, ")
    assert "S_block 64x64" not in shared  # one column is left
    assert re.search(r"; (\w+, )*M.* for stages outside the loop that holds them$", shared)


@pytest.mark.slow
def test_show_says_what_tune_says(cli: Cli) -> None:
    flags = ("-D", "mask=causal", "-D", "h=1", "-D", "n=128", "-D", "l=128", "-D", "d=32")
    tuned = cli.near()("tune", "attention", *flags, "-t", "x86-avx512", "-d", "simulator", "-n", 4).out
    shown = cli.near()("show", "--as", "schedule").out.splitlines()
    said = [line.strip() for line in tuned.splitlines()]
    for label in ("others", "loops ", "memory"):
        (line,) = (line for line in shown if line.startswith(label))
        assert line in said
    (work,) = (line.removeprefix("work").strip() for line in shown if line.startswith("work "))
    assert work in said
    assert "of which " in work
    assert " count: those under a mask do not" in work


@pytest.mark.slow
def test_steps_that_a_product_leaves_out_are_on_a_line(cli: Cli) -> None:
    (cli.folder / "masked.py").write_text(MASKED)
    near = cli.near()
    tuned = near("tune", "masked.py", "-t", "x86-avx512", "-d", "simulator", "-n", 2).out
    said = "left out steps of C where p <= i fails (show --as proof has the proof)"
    assert f"       {said}\n" in tuned
    assert said in near("show", "--as", "schedule").out.splitlines()
    proof = near("show", "--as", "proof").out
    assert "  left out: steps where p <= i fails\n" in proof


def test_work_lines_name_the_reasons_that_there_are() -> None:
    sizes = {"h": 1, "n": 8, "l": 8, "d": 4}
    plain, causal = (work_lines(workload("attention", mask=mask, **sizes)) for mask in ("full", "causal"))
    assert [line.split(": ")[1] for line in plain] == ["what is the same along a loop counts once"]
    both = "those under a mask do not, and what is the same along a loop counts once"
    assert [line.split(": ")[1] for line in causal] == [both]


def test_other_lines_say_what_is_computed_before_the_run() -> None:
    text = """
def f(A: f32[m, n], W: const[f32[n]], C: f32[m], *, m=64, n=64):
    V: f32[n]
    for i in range(n):
        V[i] = exp(W[i])
    for i in range(m):
        C[i] = 0
        for p in range(n):
            C[i] += A[i, p] * V[p]
"""
    plans = plans_of(TuneRequest(parse(text, filename="f.py"), api.target("x86-avx2")))[1]
    plan = next(p for p in plans if any(isinstance(q, ScalarPart) and q.stage.name == "V" for q in p.parts))
    early = (replace(q, prepared=isinstance(q, ScalarPart) and q.stage.name == "V") for q in plan.parts)
    assert "elementwise V (before the run)" in other_lines(replace(plan, parts=tuple(early)))[0]


def test_the_heading_of_a_gpus_kernel_counts_no_threads_of_a_cpu() -> None:
    plan = plans_of(TuneRequest(workload("softmax", m=4, n=64), api.target("nvidia-h200")))[1][0]
    row = int(plan.space.sample(1, np.random.default_rng(0))[0])
    assert print_kernel(lower(plan, plan.space.schedule(row))).splitlines()[0] == "kernel softmax: cuda"


def test_another_loop_over_an_axis_is_only_that() -> None:
    assert loop_words([LoopBounds("b_2"), LoopBounds("b_2")]) == ["b_2: another loop over b"]
