"""Programs, instructions and sizes whose kernels are emulated: every tier and element type, odd sizes among them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from support.cards.gpu_plans import CATALOGUE, covering

from autosched.codegen.cuda import print_cuda
from autosched.codegen.cuda.emulation import Emulated, Unit, build
from autosched.codegen.lower import lower
from autosched.device.correctness.compare import compare
from autosched.device.correctness.oracle import Oracle, compute, slack
from autosched.ir import resolve
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.request import request
from autosched.tiling.variants.block_diagonal import block_diagonal_programs
from autosched.tiling.variants.conditional import candidates_of
from autosched.tiling.variants.transposed_operands import transposed_programs

GENERATIONS = ("sm_61", "sm_70", "sm_72", "sm_75")
"""Those before asynchronous copies."""


@dataclass(frozen=True)
class Case:
    """`cores` are so few that small programs have more tiles than cores, and blocks can be persistent. `turned`: plans
    are those of the program with the operands turned that the instruction wants along another axis; `blocks`: with
    groups side by side. `arch`: an older
    generation, which has what it and those before it brought."""

    workload: str
    only: str
    sizes: dict[str, Any]
    target: str = "nvidia-h200"
    numerics: str = "reassociated"
    cores: int = 3
    turned: bool = False
    blocks: bool = False
    arch: str = ""

    def chosen(self) -> Target:
        found = dataclasses.replace(load_target(self.target), cores=self.cores)
        if not self.arch:
            return found
        had = frozenset(GENERATIONS[: GENERATIONS.index(self.arch) + 1])
        return dataclasses.replace(found, features=had, compiler={**found.compiler, "arch": self.arch})

    def plans(self) -> list[Plan]:
        target, program = self.chosen(), resolve(self.workload, self.sizes)
        found = match(program, usable(CATALOGUE, target, "simulator", [self.only]), self.numerics)
        if not self.turned and not self.blocks:
            return make_plans(program, target, candidates_of(found), 1)
        rewritten = transposed_programs if self.turned else block_diagonal_programs
        variant, *_ = rewritten(program, found, self.numerics)
        return make_plans(variant.program, target, variant.certified(candidates_of(variant.matches)), 1)


BF16 = {"a": "bf16", "b": "bf16", "acc": "f32"}
F16 = {"a": "f16", "b": "f16", "acc": "f32"}
HALF = {"a": "f16", "b": "f16", "acc": "f16"}
FP8 = {"a": "e4m3", "b": "e4m3", "acc": "f32"}
S8 = {"a": "s8", "b": "s8", "acc": "s32"}
U8S8 = {"a": "u8", "b": "s8", "acc": "s32"}
BYTES = {"t": "s8", "acc": "s32"}
F32 = {"a": "f32", "b": "f32", "acc": "f32"}
# fmt: off
CASES: dict[str, Case] = {
    # threads
    "fma": Case("matmul", "portable/*v4", {"m": 6, "n": 9, "k": 5, **F32}),
    "fma, bias": Case("matmul_bias_relu", "portable/*v4", {"m": 5, "n": 6, "k": 7}),
    "gemv": Case("gemv", "portable/*v4", {"m": 11, "k": 9}),
    "pairs of f16": Case("matmul", "cuda/fma.f16x2.sum", {"m": 6, "n": 9, "k": 5, **HALF}),
    "pairs of bf16, from registers": Case(
        "matmul_tn", "cuda/fma.bf16x2.sum", {"m": 9, "n": 12, "k": 7, "a": "bf16", "b": "bf16", "acc": "bf16"}
    ),
    "dp4a": Case("matmul_nt", "cuda/dp4a*", {"m": 4, "n": 6, "k": 32, **S8}),
    "dp4a mixed, ragged": Case("matmul_nt", "cuda/dp4a*", {"m": 7, "n": 5, "k": 21, **U8S8}),
    # warps, opaque fragments
    "wmma f16": Case("matmul", "cuda/wmma.m16n16k16.f16.f32", {"m": 40, "n": 33, "k": 40, **F16}),
    "wmma f16 to f16": Case("matmul", "cuda/wmma.m32n8k16.f16.f16", {"m": 64, "n": 16, "k": 32, **HALF}),
    "wmma s8": Case("matmul", "cuda/wmma.m16*", {"m": 20, "n": 17, "k": 40, **S8}),
    "wmma bf16 by columns": Case("matmul_tn", "cuda/wmma.m16n16k16.bf16.f32", {"m": 32, "n": 48, "k": 32, **BF16}),
    "wmma s8, lines of 8 bytes": Case("matmul", "cuda/wmma.m32n8k16.s8.s32", {"m": 13, "n": 9, "k": 20, **S8}),
    "wmma s4": Case(
        "matmul_nt",
        "cuda/wmma.m8n8k32.s4*",
        {"m": 16, "n": 12, "k": 40, "a": "s4", "b": "s4", "acc": "s32"},
    ),
    "wmma b1": Case(
        "matmul",
        "cuda/wmma.m8n8k128.b1.and",
        {"m": 8, "n": 9, "k": 256, "a": "b1", "b": "b1", "acc": "s32"},
    ),
    # generations before asynchronous copies
    "dp4a on sm_61": Case("matmul_nt", "cuda/dp4a*", {"m": 9, "n": 6, "k": 36, **S8}, arch="sm_61"),
    "softmax on sm_61": Case("softmax", "portable/*", {"m": 3, "n": 77, "t": "f16"}, arch="sm_61"),
    "wmma f16 on sm_70": Case(
        "matmul_bias_relu",
        "cuda/wmma.m16n16k16.f16.f32",
        {"m": 20, "n": 33, "k": 40, "out": "f16", **F16},
        arch="sm_70",
    ),
    "mma f16 on sm_75": Case("matmul", "cuda/mma.m16n8k8.f16.f16.f32", {"m": 20, "n": 9, "k": 24, **F16}, arch="sm_75"),
    # warps, fragments by maps
    "mma bf16": Case("matmul", "cuda/mma.m16n8k8.*", {"m": 32, "n": 16, "k": 48, **BF16}),
    "mma f16 ragged": Case("matmul", "cuda/mma.m16n8k8.*", {"m": 17, "n": 9, "k": 20, **F16}),
    "mma f16 k16": Case("matmul", "cuda/mma.m16n8k16.f16.f16.f32", {"m": 48, "n": 24, "k": 64, "out": "f16", **F16}),
    "mma f16 turned": Case("matmul_tt", "cuda/mma.m16n8k16.f16.f16.f32", {"m": 32, "n": 16, "k": 32, **F16}),
    "mma s8": Case("matmul_nt", "cuda/mma.m16n8k32.s8.s8.s32", {"m": 33, "n": 17, "k": 64, **S8}),
    "mma e4m3": Case("matmul_nt", "cuda/mma.m16n8k32.e4m3.e4m3.f32", {"m": 32, "n": 16, "k": 96, **FP8}),
    "mma f64": Case("matmul", "cuda/mma.m8n8k4*", {"m": 16, "n": 9, "k": 12, "a": "f64", "b": "f64", "acc": "f64"}),
    "mma batch": Case("batch_matmul", "cuda/mma.m16n8k8.*", {"batch": 3, "m": 17, "n": 8, "k": 16, **F16}),
    "conv2d": Case("conv2d", "cuda/mma.m16n8k8.*", {"h": 3, "w": 4, "ci": 8, "co": 9, **F16}),
    "conv2d strided": Case("conv2d", "cuda/mma.m16n8k8.*", {"h": 4, "w": 3, "ci": 5, "co": 9, "stride": 2, **F16}),
    "conv2d nchw": Case("conv2d_nchw", "cuda/mma.m16n8k8.*", {"h": 5, "w": 4, "ci": 8, "co": 8, **F16}),
    "requant": Case("matmul_requant", "cuda/mma.m16n8k32.u8.s8.s32", {"m": 17, "n": 16, "k": 64}),
    "mma tf32": Case(
        "matmul",
        "cuda/mma.m16n8k8.tf32*",
        {"m": 32, "n": 9, "k": 24, "a": "tf32", "b": "tf32", "acc": "f32"},
    ),
    "mma f16 to f16": Case("matmul", "cuda/mma.m16n8k16.f16.f16.f16", {"m": 32, "n": 16, "k": 32, **HALF}),
    "mma s4": Case(
        "matmul_nt",
        "cuda/mma.m16n8k64.s4*",
        {"m": 32, "n": 16, "k": 64, "a": "s4", "b": "s4", "acc": "s32"},
    ),
    "mma, gelu": Case(
        "matmul_bias_gelu",
        "cuda/mma.m16n8k16.bf16.bf16.f32",
        {"m": 20, "n": 16, "k": 32, "out": "bf16", **BF16},
    ),
    "mma, parts of rows": Case(
        "matmul_strided",
        "cuda/mma.m16n8k8.*",
        {"m": 24, "n": 16, "k": 16, "lda": 20, "ldb": 24, **F16},
    ),
    "mma on sm_80": Case("matmul", "cuda/mma.m16n8k16.f16.f16.f32", {"m": 40, "n": 24, "k": 48, **F16}, "nvidia-a100"),
    "mma e4m3 on sm_89": Case(
        "matmul_nt",
        "cuda/mma.m16n8k32.e4m3.e4m3.f32",
        {"m": 32, "n": 16, "k": 64, **FP8},
        "nvidia-rtx4090",
        "real",
    ),
    "conv2d, bias, residual": Case(
        "conv2d_bias_relu",
        "cuda/mma.m16n8k8.*",
        {"h": 4, "w": 5, "ci": 8, "co": 12, "residual": 1, "out": "f16", **F16},
    ),
    "conv2d dilated": Case(
        "conv2d",
        "cuda/mma.m16n8k8.*",
        {"h": 6, "w": 5, "ci": 8, "co": 8, "dilation": 2, "pad": 2, **F16},
    ),
    "conv2d of groups": Case("conv2d", "cuda/mma.m16n8k8.*", {"h": 3, "w": 5, "ci": 16, "co": 16, "groups": 2, **F16}),
    # warpgroups
    "wgmma": Case("matmul", "cuda/wgmma.m64n8k16.*.f32", {"m": 128, "n": 16, "k": 64, "out": "bf16", **BF16}),
    "wgmma ragged": Case("matmul", "cuda/wgmma.m64n16k16.f16.f32", {"m": 70, "n": 24, "k": 40, **F16}),
    "wgmma e4m3": Case(
        "matmul_nt",
        "cuda/wgmma.m64n8k32.e4m3.e4m3.f32",
        {"m": 128, "n": 16, "k": 128, **FP8},
        numerics="real",
    ),
    # Sums of few bits that are rounded to bf16 may land on the next one: the tolerance knows.
    "wgmma e4m3 to bf16": Case(
        "matmul_nt",
        "cuda/wgmma.m64n8k32.e4m3.e4m3.f32",
        {"m": 64, "n": 64, "k": 256, "out": "bf16", **FP8},
        numerics="real",
    ),
    "wgmma conv2d": Case("conv2d", "cuda/wgmma.m64n16k16.f16.f32", {"h": 8, "w": 8, "ci": 16, "co": 16, **F16}),
    "wgmma conv2d strided": Case(
        "conv2d",
        "cuda/wgmma.m64n16k16.f16.f32",
        {"n": 2, "h": 27, "w": 12, "ci": 16, "co": 32, "kw": 1, "stride": 2, **F16},
    ),
    "wgmma conv2d s8": Case(
        "conv2d",
        "cuda/wgmma.m64n16k32.s8.s8.s32",
        {"n": 2, "h": 5, "w": 13, "ci": 64, "co": 32, **BYTES},
        turned=True,
    ),
    "wgmma groups side by side": Case(
        "conv2d",
        "cuda/wgmma.m64n32k16.f16.f32",
        {"n": 2, "h": 5, "w": 13, "ci": 32, "co": 32, "groups": 4, "out": "f16", **F16},
        blocks=True,
    ),
    "wgmma turned s8": Case("matmul", "cuda/wgmma.m64n16k32.s8.s8.s32", {"m": 70, "n": 32, "k": 96, **S8}, turned=True),
    "mma turned s8": Case(
        "matmul",
        "cuda/mma.m16n8k32.s8*",
        {"m": 33, "n": 16, "k": 64, **S8},
        "nvidia-a100",
        turned=True,
    ),
    "wgmma, bias": Case(
        "matmul_bias_relu",
        "cuda/wgmma.m64n16k16.bf16.f32",
        {"m": 64, "n": 40, "k": 64, "out": "bf16", **BF16},
    ),
    "wgmma batch": Case(
        "batch_matmul",
        "cuda/wgmma.m64n8k16.f16.f32",
        {"batch": 2, "m": 64, "n": 16, "k": 48, "ta": 1, **F16},
    ),
    # Operands run on in memory along channels, of which a block has one.
    "wgmma depthwise": Case(
        "depthwise_conv2d",
        "cuda/wgmma.m64n16k16.f16.f32",
        {"h": 5, "w": 9, "c": 5, "kh": 1, "stride": 3, **F16},
    ),
    "wgmma s8": Case("matmul_nt", "cuda/wgmma.m64n16k32.s8.s8.s32", {"m": 64, "n": 32, "k": 128, **S8}),
    "wgmma turned": Case("matmul_tn", "cuda/wgmma.m64n8k16.bf16.f32", {"m": 128, "n": 16, "k": 64, **BF16}),
    # scalar programs
    "depthwise, several pixels a thread": Case(
        "depthwise_conv2d", "portable/*", {"n": 2, "h": 4, "w": 8, "c": 40, "out": "f16", **F16}
    ),
    "softmax": Case("softmax", "portable/*", {"m": 5, "n": 40}),
    "layer norm": Case("layer_norm", "portable/*", {"m": 4, "n": 24}),
    "sum of columns": Case("reduce", "portable/*", {"op": "sum", "over": "columns", "m": 7, "n": 12}),
    "gelu": Case("elementwise", "portable/*", {"op": "gelu", "m": 5, "n": 12}),
    "softmax f16": Case("softmax", "portable/*", {"m": 3, "n": 333, "t": "f16"}),
    "long sum": Case("reduce", "portable/*", {"op": "sum", "over": "rows", "m": 1, "n": 3000}),
    "sum of bytes": Case("reduce", "portable/*", {"op": "sum", "over": "columns", "m": 90, "n": 72, **BYTES}),
    "one row": Case("matmul", "portable/*v4", {"m": 1, "n": 72, "k": 90, "a": "f16", "b": "f16", "out": "f16"}),
    "double": Case("reduce", "portable/*", {"op": "max", "over": "rows", "m": 5, "n": 130, "t": "f64"}),
    "warps' rows": Case("elementwise", "portable/*", {"op": "add", "t": "f16", "m": 6, "n": 75}),
}
# fmt: on


@dataclass
class Emulation:
    """Kernels of one plan, compiled together; `rows` are their schedules' rows."""

    plan: Plan
    oracle: Oracle
    rows: list[int]
    built: list[Emulated] = field(default_factory=list)

    def check_all(self) -> None:
        """The emulated kernels' outputs against the oracle's. EmulationError for everything else that is wrong."""
        for row, kernel in zip(self.rows, self.built, strict=True):
            got = kernel.run(self.oracle.inputs, self.oracle.scalars, seed=row)
            for name, want in self.oracle.wants.items():
                tolerance = self.oracle.tolerances.get(name)
                flat = None
                if tolerance is not None:
                    flat = np.broadcast_to(np.asarray(tolerance, np.float64), want.shape).reshape(-1)
                found = compare(np.asarray(got[name]).reshape(-1), np.asarray(want).reshape(-1), flat)
                assert found.ok, (self.plan.space.schedule(row), name, found)


def emulation(case: Case, most: int | None, number: int = 0, name: str = "k") -> Emulation | None:
    """A covering sample of the case's plan of this number, at most so many rows; None where there is no such plan."""
    found = case.plans()
    return compiled(case, found[number], covering(found[number])[:most], name) if number < len(found) else None


def wished(case: Case, wishes: Sequence[Mapping[str, int | str]], number: int = 0) -> Emulation:
    """A row of the case's plan of this number for each wish."""
    plan = case.plans()[number]
    rows = []
    for wish in wishes:
        answer = request(plan.space, wish)
        assert answer.row is not None, str(answer)
        rows.append(answer.row)
    return compiled(case, plan, rows)


def compiled(case: Case, plan: Plan, rows: list[int], name: str = "k") -> Emulation:
    """The plan's rows, printed and compiled for the emulated card."""
    target = case.chosen()
    made = Emulation(plan, compute(plan.program, 0, slack=slack(plan)), rows)
    units = []
    for n, row in enumerate(rows):
        kernel = lower(plan, plan.space.schedule(row))
        source = print_cuda(kernel, target)
        units.append(Unit(source.text, f"{name}{n}.cu", source.intrinsics, source.plan, kernel.program))
    made.built = build(units)
    return made
