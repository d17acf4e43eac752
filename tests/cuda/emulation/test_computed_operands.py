"""Operands that blocks of a GPU compute on the way: weights of 4 and 8 bits, normalised rows, rounded activations."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.narrow import machine, search
from support.cards.block_chains import A100, CATALOGUE, H200, RTX
from support.cards.checked_kernels import checked
from support.cards.hand_kernels import needs_compiler

from autosched.cli.answers.computed_operands import computed_lines
from autosched.ir import parse
from autosched.search.tuning.tune import usable
from autosched.tensorize.adapters.operand_types import multiplies_matrices
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan, TensorPart
from autosched.tiling.steps.gpu.operands.computed_slices import fetched_raw, loads, operations, source_bytes

pytestmark = [needs_compiler, pytest.mark.compiler]

FUSED = Path(__file__).parents[3] / "examples" / "fused"
ROWS = 3


@dataclasses.dataclass(frozen=True)
class Case:
    """A program of examples/fused on a machine; `asked` are the instructions that it may have."""

    program: str
    target: str
    asked: tuple[str, ...]
    sizes: dict[str, Any]
    numerics: str = "rescaled"
    level: str = "reassociated"
    file: str = "quantized.py"


MMA, TF32, WGMMA = ("cuda/mma.m16n8k16.*",), ("cuda/mma.m16n8k8.tf32*",), ("cuda/wgmma.m64n16k*",)
CASES = {
    "fp4 f16 mma": Case("matmul_fp4", A100, MMA, {"m": 16, "n": 32, "k": 64, "g": 32, "t": "f16", "s": "e4m3"}),
    "fp4 bf16 wgmma": Case("matmul_fp4", H200, WGMMA, {"m": 16, "n": 64, "k": 64, "g": 32, "t": "bf16", "s": "e4m3"}),
    "fp4 packed": Case("matmul_fp4_packed", RTX, MMA, {"m": 5, "n": 24, "k": 48, "g": 16, "t": "f16", "s": "e4m3"}),
    "int4 f16 groups": Case("matmul_int4", A100, MMA, {"m": 16, "n": 16, "k": 64, "g": 32, "t": "f16"}),
    "int8 bf16 groups": Case("matmul_int8", RTX, MMA, {"m": 1, "n": 24, "k": 64, "g": 32, "t": "bf16"}),
    "int4 f16 wgmma": Case("matmul_int4", H200, WGMMA, {"m": 16, "n": 64, "k": 64, "g": 32, "t": "f16"}),
    "fp8 bf16": Case("matmul_fp8", A100, MMA, {"m": 17, "n": 16, "k": 32, "g": 16, "t": "bf16"}),
    "fp8 blocks": Case("matmul_fp8_blocks", H200, WGMMA, {"m": 16, "n": 64, "k": 64, "g": 32}),
    "int4 tf32": Case("matmul_int4", A100, TF32, {"m": 16, "n": 16, "k": 32, "g": 16}, "real", "real"),
    "int4 tf32 wgmma": Case("matmul_int4", H200, WGMMA, {"m": 16, "n": 64, "k": 32, "g": 16}, "real", "real"),
    "int8 real wgmma": Case("matmul_int8", H200, WGMMA, {"m": 16, "n": 64, "k": 128, "g": 32, "t": "bf16"},
                            "real", "real"),
    "norm f16": Case("rms_norm_product", RTX, MMA, {"m": 16, "n": 16, "k": 32, "t": "f16"}, file="norm_product.py"),
    "norm wgmma": Case("layer_norm_product", H200, WGMMA, {"m": 16, "n": 64, "k": 32, "t": "bf16"},
                       file="norm_product.py"),
}  # fmt: skip


@cache
def plans_of(name: str) -> tuple[Plan, ...]:
    """All plans of a case whose product multiplies matrices."""
    case = CASES[name]
    program = parse((FUSED / case.file).read_text(), function=case.program, sizes=case.sizes)
    offered = usable(CATALOGUE, machine(case.target), "simulator", case.asked)
    found = plan_program(program, machine(case.target), CATALOGUE, offered, numerics=case.numerics).every
    return tuple(p for p in found if any(multiplies_matrices(m.intrinsic) for m in p.mappings))


def product_of(plan: Plan) -> TensorPart:
    return [t for t in plan.tensor_parts if multiplies_matrices(t.nest.intrinsic)][-1]


def on_the_way(name: str) -> Plan:
    return next(p for p in plans_of(name) if product_of(p).nest.computed)


@pytest.mark.sampled("fp4 packed", "fp8 bf16", "int4 f16 groups", "int8 bf16 groups", "norm wgmma")
@pytest.mark.parametrize("name", [n for n in CASES if n != "fp8 blocks"])
def test_products_are_on_instructions_that_multiply_matrices(name: str) -> None:
    """With the operand in a stage of its own, and on the way."""
    part = product_of(on_the_way(name))
    assert any(not product_of(p).nest.computed for p in plans_of(name)) or name.startswith("norm")
    assert part.nest.mapping.numerics == CASES[name].level
    program = part.nest.mapping.program
    for operand, way in part.nest.computed.items():
        sources = {r.tensor for r in way.sources}
        assert way.tensor not in {s.assign.tensor for s in program.stages if s.name == part.nest.stage.name}
        assert 0 < source_bytes(part.nest, operand) <= sum(program.tensors[s].dtype.bytes for s in sources)


def test_partial_sums_of_groups_may_keep_fewer_bits() -> None:
    """Scaled group by group, as a promotion does without scales."""
    plan = plans_of("fp8 blocks")[0]
    assert all(part in plan.name for part in ("wgmma", "e4m3", "defer"))


@pytest.mark.sampled("fp4 f16 mma")
@pytest.mark.parametrize("name", CASES)
def test_kernels_are_right(name: str) -> None:
    plan = plans_of(name)[0] if name == "fp8 blocks" else on_the_way(name)
    rows = [int(r) for r in plan.space.thinned(ROWS, np.random.default_rng(len(name)))]
    checked(plan, rows, re.sub(r"\W", "_", name))


def test_what_calls_that_run_on_take_is_fetched_raw_and_ahead() -> None:
    """Copies bring narrow weights some slices ahead; threads compute one slice of what they have fetched themselves."""
    plan = on_the_way("int8 real wgmma")
    asked = {"copy": 1, "stages": 3, "vector": 16}
    drawn = [int(r) for r in plan.space.thinned(1024, np.random.default_rng(1))]
    row = next(r for r in drawn if asked.items() <= plan.space.schedule(r).values.items())
    (text,) = checked(plan, [row], "ahead")
    assert f"{int(plan.space.values([row])['shared_bytes'][0]):,} bytes of shared memory" in text
    first, loop = text.split("// slices of ")[:2]
    assert first.count("end_copies();") == 2, "two slices are on their way before the loop"
    assert re.search(r"start_copy<8>\(&?W_raw", first)
    made = loop.index("// compute a slice of W_factor")
    assert loop.index("wait_copies<1>();") < loop.index("// fetch a slice of W") < made < loop.index("wgmma_")
    assert re.search(r"\bW\[|&W_at", loop[made:]) is None, "weights come from shared memory"


def test_what_computing_takes_is_counted() -> None:
    """Bits that are read as another type take no instruction; what a group shares is loaded once for some rows."""
    nest = product_of(on_the_way("int8 real wgmma")).nest
    (operand,) = nest.computed
    assert [r.tensor for r in fetched_raw(nest, operand)] == ["W"], "scales and zero points stay for a group"
    assert 1 < loads(nest, operand) < len(nest.computed[operand].sources)
    assert 3 <= operations(nest, operand) <= 6
    assert operations(nest, next(o.name for o in nest.intrinsic.inputs if o.name != operand)) == 0


def test_slices_are_computed_beside_copies_that_run_on() -> None:
    plan = on_the_way("fp4 f16 mma")
    drawn = plan.space.thinned(256, np.random.default_rng(1))
    asked = {"stage_a": 1, "stage_b": 1, "copy": 1}
    row = next(int(r) for r in drawn if asked.items() <= plan.space.schedule(int(r)).values.items())
    (text,) = checked(plan, [row], "beside")
    begun = text[text.index("start_copy<") :]
    begun = begun[: begun.index("end_copies();")]
    assert "load_e2m1(W_run[x])" in begun
    assert re.search(r"copy<[248]>\(W_run, &W", begun), "neighbouring weights are loaded together"
    assert "W_factor" not in text.replace("W_factor_shared", "").replace("compute a slice of W_factor", "") or (
        "W_factor[" not in text
    )


@pytest.mark.slow
@pytest.mark.parametrize(("programs", "least"), [(3, 4), pytest.param(30, 45, marks=pytest.mark.slow)])
def test_random_narrow_operands(programs: int, least: int) -> None:
    """`python -m tests.fuzz.narrow --programs 500` looks at more of them."""
    count, wrong = search(0, programs)
    assert not wrong, wrong
    assert count["kernels"] >= least
    assert count["matrices"] > 0


def test_what_is_read_is_told() -> None:
    """Bytes of the narrow data for an element, and what is not stored."""
    (line,) = computed_lines(on_the_way("int4 f16 groups"))
    assert line == (
        "reads    W (u4), Z (u4) for W_factor: 1.03 bytes are read for an element of 2; 2 KiB of it are not stored"
    )
