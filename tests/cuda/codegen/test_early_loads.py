"""Elements of memory that are loaded before a trip of a loop waits: only what every trip loads, from places that are
known where it begins."""

from __future__ import annotations

from fuzz.fragments import CATALOGUE
from support.cards.nvrtc import compiled

from autosched.codegen.cuda import print_cuda
from autosched.codegen.lower import lower
from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.space.request import request

ROW = {"copy": "cp.async", "stages": 2, "vector": "16 B", "split": "1"}


def loop_of(n: int, weights: str = "int8") -> list[str]:
    """Lines of the loop over slices, in a product on narrow weights of n columns with a scale for 128 of the depth."""
    target = load_target("nvidia-h200")
    program = workload(f"matmul_{weights}", m=16, n=n, k=512, g=128, t="bf16")
    asked = usable(CATALOGUE, target, "simulator", ("cuda/wgmma.m64n16k16.bf16.f32",))
    plans = plan_program(program, target, CATALOGUE, asked, numerics="real").plans
    plan = next(p for p in plans if p.name.endswith("k←p) W_factor on the way [factor W_factor[p, j] in bf16]"))
    depth = next(d.name for d in plan.space.decisions if d.name.startswith("block_"))
    row = request(plan.space, {**ROW, depth: 4}).row
    assert row is not None
    source = print_cuda(lower(plan, plan.space.schedule(row)), target)
    assert not compiled(source).warnings
    lines = [line.strip() for line in source.text.splitlines()]
    begin = next(i for i, line in enumerate(lines) if line.endswith("// slices of Y"))
    return lines[begin : next(i for i in range(begin, len(lines)) if lines[i].startswith("group_begin"))]


def places(lines: list[str], beginning: str) -> list[int]:
    return [i for i, line in enumerate(lines) if line.startswith(beginning)]


def test_scales_are_loaded_before_the_wait() -> None:
    lines = loop_of(128)
    (wait,) = places(lines, "wait_copies")
    assert max(places(lines, "copy<16>(S_run")) < wait
    assert max(places(lines, "copy<8>(Z_run")) < wait
    assert min(places(lines, "copy<8>(W_raw_run")) > wait  # these are what it waits for


def test_elements_below_a_byte_are_copied_as_they_are() -> None:
    assert places(loop_of(128, "int4"), "start_copy<8>(&W_raw_at")


def test_what_is_loaded_under_a_condition_stays_there() -> None:
    lines = loop_of(120)  # of the last block's columns some are none
    (wait,) = places(lines, "wait_copies")
    assert all(i > wait for i in places(lines, "copy<16>(S_run"))
