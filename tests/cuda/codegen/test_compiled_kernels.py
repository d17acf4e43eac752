"""Printed kernels through NVRTC, for their own architectures: those that are emulated.

Each becomes its machine instruction, spills nothing and takes the shared memory that its space counts. Every run takes
a row of each case; `-m slow_cuda` takes the covering samples of several plans.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from support.cards.emulated_cases import CASES, Case
from support.cards.gpu_plans import H200, covering, plans
from support.cards.nvrtc import compiled, needs_disassembler

from autosched.codegen.cuda import CudaSource, print_cuda
from autosched.codegen.lower import lower
from autosched.device.cuda.compile.nvrtc import OPTIONS, ROLLED, Cubin, compile_cuda
from autosched.device.cuda.compile.sass import instructions_of, instructions_of_each
from autosched.machine.target import Target
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.request import request

PLANS = 3
MACHINE = {
    r"wgmma.*\.e[45]m": "QGMMA",
    r"wgmma.*\.[su]8\b": "IGMMA",
    r"wgmma": "HGMMA",
    r"mma.*\.b1\b": "BMMA",
    r"mma.*\.[su][48]\b": "IMMA",
    r"mma.*\.f64\b": "DMMA",
    r"mma.*\.e[45]m": "[HQ]MMA",  # Hopper's `mma.sync` converts to f16 first
    r"mma": "HMMA",
    r"dp4a": "IDP",
    r"fma\.f32": "FFMA",
}
"""What instructions by their names become."""


def printed(plan: Plan, row: int, target: Target) -> CudaSource:
    """The kernel's text, which declares no number in vain. It asks for the shared memory that the space counts; with
    opaque fragments for that much at most."""
    source = print_cuda(lower(plan, plan.space.schedule(row)), target)
    code = re.sub(r"//.*", "", source.text)
    for name in re.findall(r"const int (\w+) =", code):
        assert len(re.findall(rf"\b{name}\b", code)) > 1, (name, plan.space.schedule(row))
    values = plan.space.values([row])
    if "shared_bytes" in values:
        most, got = int(values["shared_bytes"][0]), max(launch.shared_bytes for launch in source.plan.launches)
        opaque = any(o.opaque is not None for m in plan.mappings for o in m.intrinsic.operands.values())
        assert got <= most if opaque else got == most, plan.space.schedule(row)
    return source


Compiled = tuple[Plan, CudaSource, Cubin]


def looked_at(case: Case, number: int, most: int | None) -> list[Compiled]:
    """Compile rows of a covering sample of the case's plan of this number."""
    target, found = case.chosen(), case.plans()
    if number >= len(found):
        pytest.skip("so many plans there are not")
    plan = found[number]
    made = []
    for row in covering(plan)[:most]:
        source = printed(plan, row, target)
        cubin = compiled(source)
        spilled = sum(k.spill_store_bytes + k.spill_load_bytes for k in cubin.kernels.values())
        assert spilled == 0, plan.space.schedule(row)
        assert not [w for w in cubin.warnings if "setmaxnreg" in w or "warning #" in w], plan.space.schedule(row)
        made.append((plan, source, cubin))
    return made


def assert_instructions(made: Sequence[Compiled]) -> None:
    """Of all kernels of one architecture at once: the disassembler takes long to start."""
    needs_disassembler()
    made = [(plan, source, cubin) for plan, source, cubin in made if plan.mappings]
    for arch in {source.arch for _, source, _ in made}:
        mine = [(plan, cubin) for plan, source, cubin in made if source.arch == arch]
        operations = instructions_of_each([cubin.code for _, cubin in mine], arch)
        for (plan, _), own in zip(mine, operations, strict=True):
            for name in {m.intrinsic.name for m in plan.mappings}:
                wanted = next((op for pattern, op in MACHINE.items() if re.search(pattern, name)), None)
                assert wanted is None or any(re.fullmatch(wanted, op) for op in own), (name, own)


@cache
def first(name: str) -> Compiled:
    (one,) = looked_at(CASES[name], 0, 1)
    return one


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CASES)
def test_kernels_of_every_tier_compile(name: str) -> None:
    assert first(name)[2].kernels


@pytest.mark.slow
def test_kernels_of_every_tier_become_their_instructions() -> None:
    assert_instructions([first(name) for name in CASES])


@pytest.mark.slow
def test_kernels_disassembled_together_are_those_of_each() -> None:
    needs_disassembler()
    codes = [first(name)[2].code for name in ("mma bf16", "wgmma", "wgmma turned s8", "softmax")]
    together = instructions_of_each(codes, "sm_90a")
    assert together == [instructions_of(code, "sm_90a") for code in codes]


@pytest.mark.slow_cuda
@pytest.mark.parametrize("number", range(PLANS))
@pytest.mark.parametrize("name", CASES)
def test_every_decision_of_several_plans_compiles(name: str, number: int) -> None:
    assert_instructions(looked_at(CASES[name], number, None)[:1])


def test_what_only_a_comment_names_is_not_declared() -> None:
    """`block`, in "work of a persistent block"."""
    case = CASES["wgmma"]
    plan = case.plans()[0]
    row = request(plan.space, {"persistent": "yes", "cluster": "2 along i", "copy": "TMA"}).row
    assert row is not None
    assert "const int block " not in printed(plan, row, case.chosen()).text


def test_products_of_short_loops_over_slices_are_not_serialised() -> None:
    """With shares of a tile, slices are counted at run time; their loop was unrolled, and ptxas then waits for each
    product (C7520)."""
    case = CASES["wgmma conv2d strided"]
    plan = case.plans()[2]
    wish = {"split": "stream", "copy": "TMA", "roles": "producer", "cluster": "none", "swizzle": "none", "stages": 2}
    row = request(plan.space, wish | {"block_c": 1, "epilogue": "direct", "group": 1}).row
    assert row is not None
    assert not compiled(printed(plan, row, case.chosen())).warnings


@pytest.mark.slow
def test_small_tiles_of_widened_bytes_do_not_spill() -> None:
    """The rule once counted 32 registers for some, of which ptxas took all, limit or not, and spilled."""
    case = CASES["mma e4m3"]
    plan = case.plans()[0]
    rows = np.unique(np.ravel(plan.space.sample(300, np.random.default_rng(0))))
    rows = rows[plan.space.values(rows)["register_limit"] > 0]
    counted = plan.space.values(rows)["registers"]
    for n in np.argsort(counted, kind="stable")[:6]:
        source = printed(plan, int(rows[n]), case.chosen())
        taken = compiled(source).kernels[source.plan.launches[0].kernel]
        assert not taken.spills, plan.space.schedule(int(rows[n]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["dp4a mixed, ragged", "wmma f16", "mma f16 k16", "conv2d", "mma e4m3"])
def test_loops_that_name_registers_are_not_rolled(name: str) -> None:
    """Rolled, such a loop would put them in memory: a stack, though nothing spills."""
    case = CASES[name]
    plan = case.plans()[0]
    rows = [row for row in covering(plan) if plan.space.values(row)["register_limit"][0]][:3]
    for row in rows:
        source = printed(plan, row, case.chosen())
        rolled = compile_cuda(source.text, source.arch, source.headers, options=(*OPTIONS, ROLLED))
        assert not any(k.stack_bytes for k in rolled.kernels.values()), plan.space.schedule(row)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("only", ["cuda/mma.m16n8k64.s4*", "cuda/wmma.m8n8k32.s4*", "cuda/wmma.m8n8k128.b1.and"])
def test_elements_below_a_byte_take_one_in_shared_memory(only: str) -> None:
    """A space once counted their bits, so that some of its rows could not be launched."""
    kind = "b1" if "b1" in only else "s4"
    _, (plan, *_) = plans("matmul_nt", only, m=512, n=512, k=1024, a=kind, b=kind, acc="s32")
    rows = np.unique(np.ravel(plan.space.sample(60, np.random.default_rng(0))))
    for n in np.argsort(-plan.space.values(rows)["shared_bytes"])[:8]:
        printed(plan, int(rows[n]), H200)


def test_sums_of_many_warps_spill_nothing() -> None:
    """What 31 warps leave for one was read in one go, in a block whose threads have few registers each. NVRTC 12.9
    spills neither way, but takes up to 7 registers more for all at once."""
    case = CASES["sum of bytes"]
    plan = case.plans()[0]
    row = request(plan.space, {"warps": 32, "vector": 4, "split": 1}).row
    assert row is not None
    source = printed(plan, row, case.chosen())
    assert "#pragma unroll 8" in source.text
    cubin = compiled(source)
    assert not any(k.spill_store_bytes + k.spill_load_bytes for k in cubin.kernels.values())
