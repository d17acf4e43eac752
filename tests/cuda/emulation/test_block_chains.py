"""Chains within blocks of a GPU: several products, rows and elementwise stages in one kernel, without a GPU.

Every kernel runs in the interpreter (races between workers, memory that nobody wrote), as printed text on the emulated
card (barriers, fences), and compiles for its architecture without spilling; the numbers are the program's.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fuzz.handed import search
from support.cards.block_chains import CASES, F16, H200, HANDED, ROWS, BlockChain, holding, several
from support.cards.checked_kernels import checked as check
from support.cards.checked_kernels import right
from support.cards.gpu_plans import CATALOGUE
from support.cards.hand_kernels import needs_compiler
from support.cards.nvrtc import compiled
from support.programs.block_chains import ALONE, MANY, MLP

from autosched import ir
from autosched.codegen.cuda import print_cuda
from autosched.codegen.cuda.emulation import Unit, build
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, Stmt, with_bodies
from autosched.device.correctness.oracle import compute, slack
from autosched.errors import UsageError
from autosched.ir.value import Read
from autosched.ir.workload import workload
from autosched.logic import Int
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.families import PARTS, family_of
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.find_warp_rows import rows_inside
from autosched.tiling.plans.plan import TileLoopsPart
from autosched.tiling.steps.gpu.bodies.held_rows import AHEAD, BESIDE_LAST, WITH_PRODUCT
from autosched.tiling.steps.gpu.operands.operand_paths import CHUNK_BYTES
from autosched.tiling.steps.gpu.operands.operand_sources import GLOBAL, SHARED
from autosched.tiling.variants.one_pass import one_pass_programs

pytestmark = [needs_compiler, pytest.mark.compiler]


def test_there_are_as_many_kernels_as_the_suite_promises() -> None:
    assert len(CASES) * ROWS >= 150
    assert {case.machine.compiler["arch"] for case in CASES.values()} == {"sm_80", "sm_89", "sm_90a"}


@pytest.mark.slow
def test_rows_have_every_place_and_overlap() -> None:
    """Intermediates of 512 bytes and more lie in shared memory and in memory; slices are copied in every way."""
    for name, wanted in (("flash f16 nvidia-a100", {0, 1}), ("linear bf16 nvidia-rtx4090", {0})):
        case = CASES[name]
        values = case.plan.space.values(case.rows(2 * ROWS))
        seen: dict[str, set[int]] = {}
        for column, found in values.columns.items():
            seen.setdefault(column.rsplit(".", 1)[-1], set()).update(np.unique(found).tolist())
        places = {d.name.rsplit(".", 1)[-1]: {*d.domain} for d in case.plan.space.decisions if ".place_" in d.name}
        assert {0, 1} in places.values()
        assert all(seen[name] == domain for name, domain in places.items()), seen
        assert wanted <= seen["copy"]  # through registers, and cp.async
        assert {1, 2} <= seen["stages"]


@pytest.mark.parametrize(("text", "blocks"), [(MANY, (2, 2, 6)), (ALONE, (1, 1, 1))], ids=["many loops", "none"])
def test_grids_of_any_number_of_parallel_loops(text: str, blocks: tuple[int, int, int]) -> None:
    target = load_target("nvidia-a100")
    plans = plan_program(ir.parse(text), target, CATALOGUE, usable(CATALOGUE, target, "simulator", None)).plans
    plan = next(p for p in plans if any(isinstance(q, TileLoopsPart) and q.grid for q in p.parts))
    rows = several(plan, 2)
    check(plan, rows, "grid")
    kernel = lower(plan, plan.space.schedule(rows[0]))
    assert [launch.grid for launch in print_cuda(kernel, target).plan.launches] == [blocks]


@pytest.mark.sampled("linear bf16 nvidia-rtx4090")
@pytest.mark.parametrize("name", CASES)
def test_chains_within_blocks(name: str) -> None:
    case = CASES[name]
    rows = case.rows()
    assert len(rows) == ROWS
    texts = check(case.plan, rows, re.sub(r"\W", "_", name))
    launches = [len(re.findall("__global__", text)) for text in texts]
    assert launches == [1] * ROWS  # all stages in one


@pytest.mark.sampled("one warp")
@pytest.mark.parametrize("name", HANDED)
def test_fragments_are_handed_on_in_registers(name: str) -> None:
    """In every split that a space has: nothing of the tensor is in memory."""
    plan = HANDED[name].plan
    rows = holding(plan, 2)
    assert rows
    for row, text in zip(rows, check(plan, rows, "handed_" + re.sub(r"\W", "_", name)), strict=True):
        assert re.search(r" P_held(\[\d+\])+;", text), plan.space.schedule(row)
        assert not re.search(r"\bP(_\d+)?\[", text)  # nor in memory


@pytest.mark.slow
def test_the_first_product_runs_while_rows_are_computed() -> None:
    """It is issued in front of the loop and in each iteration but the last, and nothing waits for it between that and
    the rows."""
    sizes = {"h": 1, "n": 256, "l": 192, "d": 64, "tile": 64, "block": 64}
    plan = BlockChain("flash", H200, F16 | sizes).plan
    (ahead,) = (d.name for d in plan.space.decisions if d.name.endswith("." + AHEAD.name))
    rows = [r for r in holding(plan, 3) if plan.space.schedule(r).values[ahead] == WITH_PRODUCT]
    assert rows
    for text in check(plan, rows, "issued"):
        before, after = text.split("for (int j_block", 1)
        assert before.count("group_begin();") == 1
        loop = after[: after.index("group_wait<0>();", after.index("exp_f32"))]
        assert [loop.count(part) for part in ("group_wait<0>();", "group_begin();")] == [1, 2]
        issued, rows_at = loop.index("group_begin();"), loop.index("exp_f32")
        assert loop.index("group_wait<0>();") < issued < rows_at < loop.index("group_begin();", issued + 1)


@pytest.mark.slow
@pytest.mark.sampled("192 keys")
@pytest.mark.parametrize("keys", [128, 192], ids=lambda n: f"{n} keys")
def test_the_first_product_is_issued_beside_the_last(keys: int) -> None:
    """Nothing waits between the rows and the next iteration, which begins with the only wait; behind the loop the sums
    are waited for once more."""
    sizes = {"h": 1, "n": 256, "l": keys, "d": 64, "tile": 64, "block": 64}
    plan = BlockChain("flash", H200, F16 | sizes).plan
    (ahead,) = (d.name for d in plan.space.decisions if d.name.endswith("." + AHEAD.name))
    rows = [r for r in holding(plan, 8) if plan.space.schedule(r).values[ahead] == BESIDE_LAST]
    assert rows
    for text in check(plan, rows, f"beside{keys}"):
        before, after = text.split("for (int j_block", 1)
        assert before.count("group_begin();") == 1
        assert [after.count(part) for part in ("group_wait<0>();", "group_begin();")] == [2, 2]
        assert after.index("group_wait<0>();") < after.index("exp_f32") < after.index("group_begin();")
        assert after.rindex("group_begin();") < after.rindex("group_wait<0>();")


@pytest.mark.slow
@pytest.mark.parametrize(("programs", "least"), [(2, 1), pytest.param(8, 4, marks=pytest.mark.slow)])
def test_random_chains_are_handed_on_rightly(programs: int, least: int) -> None:
    """`python -m tests.fuzz.handed --programs 500` looks at more of them."""
    count, wrong = search(0, programs)
    assert not wrong, wrong
    assert count["kernels"] >= least


def test_a_lane_reads_no_other_lane_s_fragments() -> None:
    """A read that is moved by one element is refused by the printer: another lane has what it wants."""
    case = HANDED["one warp"]
    kernel = lower(case.plan, case.plan.space.schedule(holding(case.plan, 1)[0]))

    def moved(stmt: Stmt) -> Stmt:
        match stmt:
            case Assign(value=Read("P_held", (*outer, element)) as read):
                assert isinstance(element, Int)
                return replace(stmt, value=replace(read, index=(*outer, (element + 2) % 128)))
            case _:
                return with_bodies(stmt, lambda body: tuple(map(moved, body))) or stmt

    wrong = replace(kernel, main=replace(kernel.main, body=tuple(map(moved, kernel.main.body))))
    assert wrong != kernel
    print_cuda(kernel, case.machine)
    with pytest.raises(UsageError, match="another lane holds"):
        print_cuda(wrong, case.machine)


@pytest.mark.slow
def test_no_lane_takes_what_lies_otherwise() -> None:
    """Lanes hold pairs of 32-bit sums, where bytes are wanted by fours and tf32 one by one."""
    for name in ("mlp tf32", *(n for n in CASES if n.startswith("bytes s8"))):
        loops = [p for p in CASES[name].plan.parts if isinstance(p, TileLoopsPart)]
        found = [rows for part in loops for rows in rows_inside(part)]
        assert found, name
        assert not any(product.taken for rows in found for product in rows.products), name


def test_what_is_read_behind_the_loop_leaves_registers() -> None:
    """The last block's probabilities are read once more: registers go to memory behind the loop."""
    text = MLP + """        for i in range(tile):
            Y[i_tile * tile + i, 0] += acc(P[i_tile * tile + i, 3])
"""
    target = dataclasses.replace(load_target("nvidia-a100"), cores=3)
    planned = plan_program(ir.parse(text), target, CATALOGUE, usable(CATALOGUE, target, "simulator", None))
    plan = next(p for p in planned.plans if any(isinstance(q, TileLoopsPart) for q in p.parts))
    rows = holding(plan, 2)
    assert rows
    check(plan, rows, "behind")


LATE = MLP.replace("    P: t[m, block]\n", "    P: t[m, block]\n    M: acc[m]\n").replace(
    "            for i, j in grid(tile, block):\n                P[",
    """            for i in range(tile):
                if f_block == 0:
                    M[i_tile * tile + i] = 0
            for i in range(tile):
                for j in range(block):
                    M[i_tile * tile + i] += H[i_tile * tile + i, j]
            for i, j in grid(tile, block):
                P[""",
).replace("+ B[f_block * block + j]", "+ B[f_block * block + j] - M[i_tile * tile + i] * 0.125")
"""A carried number of each row that the first iteration sets."""
UNREAD = MLP.replace("    P: t[m, block]\n", "    P: t[m, block]\n    U: acc[m, block]\n").replace(
    "            for i, j in grid(tile, block):\n                P[",
    """            for i, j in grid(tile, block):
                U[i_tile * tile + i, j] = 0
                for p in range(k):
                    U[i_tile * tile + i, j] += acc(X[i_tile * tile + i, p]) * acc(W[p, f_block * block + j])
            for i, j in grid(tile, block):
                U[i_tile * tile + i, j] *= 0.25
            for i, j in grid(tile, block):
                P[""",
)
"""A product that a stage scales in place, and nobody reads."""


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", [LATE, UNREAD], ids=["set by the first iteration", "nobody reads it"])
def test_rows_that_begin_late_or_lead_nowhere(text: str) -> None:
    assert text.count("\n") > MLP.count("\n") + 3
    target = dataclasses.replace(load_target("nvidia-a100"), cores=3)
    planned = plan_program(ir.parse(text), target, CATALOGUE, usable(CATALOGUE, target, "simulator", None))
    plan = next(p for p in planned.plans if any(isinstance(q, TileLoopsPart) for q in p.parts))
    rows = holding(plan, 2)
    assert rows
    check(plan, rows, "late")


FEW = {"nvidia-a100": ["*mma.m16n8k16.f16.f16.f32"], "nvidia-h200": ["*wgmma.m64n16k16.f16*", "*wgmma.m64n64k16.f16*"]}
"""Instructions of the plans that are run, without which planning takes longer than the run."""


@pytest.mark.slow
@pytest.mark.parametrize(("mask", "machine"), [("causal", "nvidia-a100"), ("full", "nvidia-h200")])
def test_attention_of_one_pass_stays_in_registers(mask: str, machine: str) -> None:
    one_pass_in_registers(mask, machine, {"h": 2, "n": 128, "l": 128, "d": 32}, None, 6)


@pytest.mark.slow
@pytest.mark.parametrize(("mask", "machine"), [("causal", "nvidia-a100"), ("full", "nvidia-h200")])
def test_attention_of_few_rows_stays_in_registers(mask: str, machine: str) -> None:
    one_pass_in_registers(mask, machine, {"h": 1, "n": 64, "l": 128, "d": 16}, FEW[machine], 1)


def one_pass_in_registers(mask: str, machine: str, sizes: dict[str, int], only: list[str] | None, most: int) -> None:
    """What a rewrite makes of the plain loops: scores, probabilities, a row's numbers and both products' sums in
    registers of warps, or of warpgroups, keys and values fetched a block ahead, queries loaded once; rows without a
    number as written."""
    program = workload("attention_rounded", **sizes, mask=mask)
    target = dataclasses.replace(load_target(machine), cores=3)
    found = usable(CATALOGUE, target, "simulator", only)
    planned = plan_program(program, target, CATALOGUE, found, numerics="real")
    plan = next(p for p in planned.every if any(r.name.startswith("online") for r in p.rewrites))
    copied = {"S_block.stage_b": SHARED, "S_block.vector": CHUNK_BYTES}  # two bytes are not copied by themselves
    rows = holding(plan, most, also=copied)
    assert rows
    texts = check(plan, rows, f"one_pass{most}_{mask}_{machine[-4:]}")
    for text in texts:
        assert not re.search(r"\b(M_term|M_term_factor)(_\d+)?\[", text)
    assert all(("wgmma" in text) == (machine == "nvidia-h200") for text in texts)
    for row in holding(plan, 1, also={"S_block.stage_a": GLOBAL}) if most == 1 else ():  # one tile of rows a warp
        assert "Q_kept" in print_cuda(lower(plan, plan.space.schedule(row)), target).text
    assert any("start_copy" in text and "wait_copies<0>" in text for text in texts)
    for row in rows:  # the scores' one later use sets them first: at most one column is left, which no register goes to
        kernel = lower(plan, plan.space.schedule(row))
        stores = (s for s in kernel.statements if isinstance(s, Assign) and s.buffer == "S_block_2")
        assert not any("S_block_held" in str(store.value) for store in stores)
        assert "S_block_2" not in kernel.buffers or kernel.buffers["S_block_2"].shape[-1] == 1
    special = compute(program, 0, slack=slack(plan)).inputs
    special["Q"][0, 3] = np.inf
    if sizes["h"] > 1:  # no row of this head has a number then, and each is computed as written, in seconds
        special["K"][1, 5, 2] = np.nan
    oracle = compute(program, 0, inputs=special, slack=slack(plan))
    kernel = lower(plan, plan.space.schedule(rows[0]))
    right(oracle, run_kernel(kernel, oracle.inputs, oracle.scalars), plan, rows[0])


@pytest.mark.sampled("1")
@pytest.mark.parametrize("heads", [1, 2])
def test_rows_and_keys_that_tiles_do_not_divide(heads: int) -> None:
    """One row and one key are left over: their loops are too short for instructions, and lanes of a warp compute one
    number of a row after the other. Without heads that is a launch, whose conditions read memory, too."""
    program, target = workload("attention", h=heads, n=65, l=65, d=32, t="f16"), load_target("nvidia-h200")
    planned = plan_program(program, target, CATALOGUE, usable(CATALOGUE, target, "simulator", None))
    plan = next(p for p in planned.every if any(isinstance(q, TileLoopsPart) for q in p.parts))
    row = int(plan.space.sample(1, np.random.default_rng(0))[0])
    kernel = lower(plan, plan.space.schedule(row))
    oracle, source = compute(program, 0, slack=slack(plan)), print_cuda(kernel, target)
    assert compiled(source).kernels
    (emulated,) = build([Unit(source.text, f"left_over{heads}.cu", source.intrinsics, source.plan, kernel.program)])
    right(oracle, emulated.run(oracle.inputs, oracle.scalars, seed=row), plan, row)


@pytest.mark.sampled("one query")
@pytest.mark.parametrize(
    ("sizes", "blocks"),
    [({"h": 2, "group": 2, "l": 192, "t": "f16"}, 3), ({"h": 1, "group": 1, "l": 150}, 2)],
    ids=["grouped heads", "one query"],
)
def test_parts_are_blocks_and_a_second_kernel_merges_them(sizes: dict[str, Any], blocks: int) -> None:
    program = workload("attention_decode", **{"b": 1, "d": 16} | sizes)
    target = replace(load_target("nvidia-h100"), cores=3)
    planned = plan_program(program, target, CATALOGUE, usable(CATALOGUE, target, "simulator", None))
    plan = next(p for p in planned.every if family_of(p) == PARTS)
    rows = several(plan, 3)
    texts = check(plan, rows, f"parts{blocks}")
    assert [len(re.findall("__global__", text)) for text in texts] == [2] * len(rows)
    kernel = lower(plan, plan.space.schedule(rows[0]))
    assert [launch.grid for launch in print_cuda(kernel, target).plan.launches] == [(blocks, 1, 1), (1, 1, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["nvidia-a100", "nvidia-h200"])
def test_a_loop_without_an_iteration_leaves_what_it_found(machine: str) -> None:
    sometimes_no_iteration(machine, {"n": 128, "l": 128, "d": 32}, 64, None, 2)


@pytest.mark.slow
def test_a_short_loop_without_an_iteration_leaves_what_it_found() -> None:
    sometimes_no_iteration("nvidia-a100", {"n": 32, "l": 32, "d": 16}, 16, FEW["nvidia-a100"], 1)


def sometimes_no_iteration(machine: str, sizes: dict[str, int], tile: int, only: list[str] | None, most: int) -> None:
    """The first rows of a causal pass have no whole block of keys. The kernel then stores no register that only an
    iteration writes."""
    program = workload("attention_rounded", h=1, **sizes, mask="causal")
    target = dataclasses.replace(load_target(machine), cores=3)
    found = usable(CATALOGUE, target, "simulator", only)
    passes = one_pass_programs(program, found, "real", ((tile, tile),), one_loop=False)
    planned = plan_program(next(passes).program, target, CATALOGUE, found, numerics="real")
    plan = next(p for p in planned.every if any(isinstance(q, TileLoopsPart) for q in p.parts))
    rows = holding(plan, most)
    assert rows
    check(plan, rows, f"sometimes{tile}_{machine[-4:]}")


TRANSPOSED = '''
def transposed(Q: t[n, d], K: t[l, d], V: t[l, e], O: acc[n, e],
               *, n=128, l=128, d=32, e=32, tile=64, block=64, t="f16", acc="f32"):
    S: acc[n // tile * block, tile]
    P: t[n // tile * block, tile]
    A: acc[n, e]
    for i_tile in range(n // tile):
        for i, c in grid(tile, e):
            A[i_tile * tile + i, c] = 1.0
        for j_block in range(l // block):
            for j, i in grid(block, tile):
                S[i_tile * block + j, i] = 0
                for p in range(d):
                    S[i_tile * block + j, i] += acc(K[j_block * block + j, p]) * acc(Q[i_tile * tile + i, p])
            for j, i in grid(block, tile):
                P[i_tile * block + j, i] = t(tanh(S[i_tile * block + j, i] * 0.125))
            for i, c in grid(tile, e):
                for j in range(block):
                    A[i_tile * tile + i, c] += acc(P[i_tile * block + j, i]) * acc(V[j_block * block + j, c])
        for i, c in grid(tile, e):
            O[i_tile * tile + i, c] = A[i_tile * tile + i, c]
'''
"""Scores lie the other way round."""


@pytest.mark.slow
@pytest.mark.sampled("wider sums")
@pytest.mark.parametrize("sizes", [{}, {"l": 256, "d": 64, "e": 64, "t": "bf16"}], ids=["wider sums", "a stage behind"])
def test_scores_that_lie_the_other_way_round(sizes: dict[str, Any]) -> None:
    """Accumulators that are wider than the tensor are no pieces of it; what a stage makes of sums is no slice that a
    loop leaves as it is."""
    target = dataclasses.replace(load_target("nvidia-h200"), cores=3)
    found = usable(CATALOGUE, target, "simulator", None)
    planned = plan_program(ir.parse(TRANSPOSED, sizes=sizes), target, CATALOGUE, found, numerics="real")
    plan = next(p for p in planned.plans if any(isinstance(q, TileLoopsPart) for q in p.parts))
    rows = holding(plan, 4)
    assert rows
    check(plan, rows, "transposed")
