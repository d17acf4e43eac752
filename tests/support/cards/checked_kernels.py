"""Kernels of a plan for a GPU, checked without one: in the interpreter, as printed text on the emulated card, and by
NVRTC for their architecture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from support.cards.nvrtc import compiled
from support.compiled.kernel_check import check_kernel

from autosched.codegen.cuda import print_cuda
from autosched.codegen.cuda.emulation import Unit, build
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.device.correctness.compare import compare
from autosched.device.correctness.oracle import Oracle, compute, slack
from autosched.tiling.plans.plan import Plan


def wrong_interpreted(plan: Plan, most: int, seed: int, count: Counter[str]) -> Iterator[str]:
    """What is wrong with kernels of so many rows of a plan, spread over its space: run in the interpreter, and printed
    without a compiler."""
    oracle = compute(plan.program, seed, slack=slack(plan))
    for row in plan.space.thinned(most, np.random.default_rng(seed)):
        count["kernels"] += 1
        kernel = lower(plan, plan.space.schedule(int(row)))
        check_kernel(kernel)
        print_cuda(kernel, plan.target)
        try:
            right(oracle, run_kernel(kernel, oracle.inputs, oracle.scalars, seed=int(row)), plan, int(row))
        except AssertionError as error:
            yield str(error)


def checked(plan: Plan, rows: Sequence[int], name: str, seed: int = 0) -> list[str]:
    """Run the kernels of these rows in every way; answers their texts. AssertionError for a wrong number, and for more
    shared memory than a space counts; the emulator raises for races and what else it finds."""
    oracle = compute(plan.program, seed, slack=slack(plan))
    units, texts = [], []
    for n, row in enumerate(rows):
        kernel = lower(plan, plan.space.schedule(row))
        check_kernel(kernel)
        right(oracle, run_kernel(kernel, oracle.inputs, oracle.scalars, seed=row), plan, row)
        source = print_cuda(kernel, plan.target)
        shared, values = max(launch.shared_bytes for launch in source.plan.launches), plan.space.values([row])
        counted = [int(np.ravel(v)[0]) for name, v in values.columns.items() if name.endswith("block_shared")]
        assert not counted or shared <= sum(counted), plan.space.schedule(row)
        assert compiled(source).kernels
        units.append(Unit(source.text, f"{name}{n}.cu", source.intrinsics, source.plan, kernel.program))
        texts.append(source.text)
    for row, emulated in zip(rows, build(units), strict=True):
        right(oracle, emulated.run(oracle.inputs, oracle.scalars, seed=row), plan, row)
    return texts


def right(oracle: Oracle, got: Mapping[str, np.ndarray], plan: Plan, row: int) -> None:
    for name, want in oracle.wants.items():
        tolerance, flat = oracle.tolerances.get(name), None
        if tolerance is not None:
            flat = np.broadcast_to(np.asarray(tolerance, np.float64), want.shape).reshape(-1)
        found = compare(np.asarray(got[name]).reshape(-1), np.asarray(want).reshape(-1), flat)
        assert found.ok, (plan.name, plan.space.schedule(row), name, found)
