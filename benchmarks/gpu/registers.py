"""Registers that a space counts beside those that NVRTC reports, of rows drawn uniformly. No driver takes part.

python -m benchmarks.gpu.registers --seed 1 --rows 20 [--only 'mma e4m3*'] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from autosched.codegen.cuda import print_cuda
from autosched.codegen.lower import lower
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.ir import resolve
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.conditional import candidates_of

NEAR, NEARBY = 0.12, 0.25
HANDED = ("producer_warps", "worker_registers", "entry_registers")
BIG = {"m": 4096, "n": 4096, "k": 4096}
ODD = {"m": 1000, "n": 1004, "k": 1032}
FEW = {"m": 64, "n": 4096, "k": 7168}
IMAGE = {"h": 28, "w": 28, "ci": 128, "co": 128}
F16, BF16, S8 = ({"a": t, "b": t, "acc": acc} for t, acc in (("f16", "f32"), ("bf16", "f32"), ("s8", "s32")))
E4M3, E5M2, TF32 = ({"a": t, "b": t, "acc": "f32"} for t in ("e4m3", "e5m2", "tf32"))
F32, F64 = ({"a": t, "b": t, "acc": t} for t in ("f32", "f64"))
HALF, S4 = {"a": "f16", "b": "f16", "acc": "f16"}, {"a": "s4", "b": "s4", "acc": "s32"}


@dataclass(frozen=True)
class Case:
    workload: str
    only: str
    sizes: dict[str, Any]
    target: str = "nvidia-h200"
    numerics: str = "reassociated"


CASES = {
    "thread fma": Case("matmul_nt", "portable/*v4", BIG | F32),
    "thread fma, odd": Case("matmul", "portable/*v4", ODD | F32),
    "thread fma, bias": Case("matmul_bias_relu", "portable/*v4", FEW),
    "thread fma conv2d": Case("conv2d", "portable/*v4", IMAGE | F32),
    "thread fma f16": Case("matmul_nt", "portable/*v4", BIG | F16),
    "thread dp4a": Case("matmul_nt", "cuda/dp4a*", BIG | S8),
    "thread dp4a, odd": Case("matmul_nt", "cuda/dp4a*", ODD | {"a": "u8", "b": "s8", "acc": "s32"}),
    "wmma f16": Case("matmul_nt", "cuda/wmma.m16n16k16.f16.f32", BIG | F16 | {"out": "f16"}),
    "wmma f16, odd": Case("matmul", "cuda/wmma.m16n16k16.f16.f32", ODD | F16),
    "wmma f16 to f16": Case("matmul", "cuda/wmma.*.f16.f16", FEW | HALF),
    "wmma bf16": Case("matmul_tn", "cuda/wmma.*.bf16.f32", BIG | BF16),
    "wmma tf32": Case("matmul", "cuda/wmma.*tf32*", BIG | TF32),
    "wmma s8": Case("matmul_nt", "cuda/wmma.*s8*", BIG | S8),
    "wmma s4": Case("matmul_nt", "cuda/wmma.m8n8k32.s4*", BIG | S4),
    "wmma f16 conv2d": Case("conv2d", "cuda/wmma.*.f16.f32", IMAGE | F16),
    "mma f16": Case("matmul_nt", "cuda/mma.m16n8k16.f16.f16.f32", BIG | F16 | {"out": "f16"}),
    "mma f16, odd": Case("matmul", "cuda/mma.m16n8k16.f16.f16.f32", ODD | F16),
    "mma f16 to f16": Case("matmul", "cuda/mma.m16n8k16.f16.f16.f16", BIG | HALF),
    "mma bf16, gelu": Case("matmul_bias_gelu", "cuda/mma.m16n8k16.bf16*", FEW | BF16 | {"out": "bf16"}),
    "mma f16 k8": Case("matmul", "cuda/mma.m16n8k8.f16*", FEW | F16),
    "mma tf32": Case("matmul", "cuda/mma.m16n8k8.tf32*", BIG | TF32),
    "mma f64": Case("matmul", "cuda/mma.*f64*", {"m": 1024, "n": 1024, "k": 1024} | F64),
    "mma s8": Case("matmul_nt", "cuda/mma.m16n8k32.s8.s8.s32", BIG | S8),
    "mma s8, odd": Case("matmul_nt", "cuda/mma.m16n8k32.s8.s8.s32", ODD | S8),
    "mma requantised": Case("matmul_requant", "cuda/mma.m16n8k32.u8.s8.s32", {"m": 4096, "n": 4096, "k": 1024}),
    "mma f16 conv2d": Case("conv2d", "cuda/mma.m16n8k16.f16*", IMAGE | F16),
    "mma f16 conv2d strided": Case("conv2d", "cuda/mma.m16n8k16.f16*", IMAGE | F16 | {"stride": 2, "ci": 72}),
    "mma f16 conv2d nchw": Case("conv2d_nchw", "cuda/mma.m16n8k16.f16*", IMAGE | F16),
    "mma f16 on sm_80": Case("matmul_nt", "cuda/mma.m16n8k16.f16.f16.f32", BIG | F16, "nvidia-a100"),
    "mma e4m3 on sm_89": Case("matmul_nt", "cuda/mma.m16n8k32.e4m3.e4m3.f32", BIG | E4M3, "nvidia-rtx4090", "real"),
    "mma e4m3, odd, on sm_89": Case(
        "matmul_nt", "cuda/mma.m16n8k32.e4m3.e4m3.f32", ODD | E4M3, "nvidia-rtx4090", "real"
    ),
    "mma-f8 e4m3": Case("matmul_nt", "cuda/mma.m16n8k32.e4m3.e4m3.f32", BIG | E4M3),
    "mma-f8 e4m3, odd": Case("matmul_nt", "cuda/mma.m16n8k32.e4m3.e4m3.f32", ODD | E4M3),
    "mma-f8 e4m3, few": Case("matmul_nt", "cuda/mma.m16n8k32.e4m3.e4m3.f32", FEW | E4M3 | {"out": "bf16"}),
    "mma-f8 e5m2": Case("matmul_nt", "cuda/mma.m16n8k32.e5m2.e5m2.f32", BIG | E5M2),
    "wgmma f16": Case("matmul_nt", "cuda/wgmma.*k16.f16.f32", BIG | F16 | {"out": "f16"}),
    "wgmma bf16, odd": Case("matmul", "cuda/wgmma.*k16.bf16.f32", ODD | BF16),
    "wgmma bf16, gelu": Case("matmul_bias_gelu", "cuda/wgmma.*k16.bf16.f32", FEW | BF16 | {"out": "bf16"}),
    "wgmma e4m3": Case("matmul_nt", "cuda/wgmma.*.e4m3.e4m3.f32", BIG | E4M3 | {"out": "bf16"}, numerics="real"),
    "wgmma s8": Case("matmul_nt", "cuda/wgmma.*.s8.s8.s32", BIG | S8),
    "wgmma tf32": Case("matmul_nt", "cuda/wgmma.*tf32*", BIG | TF32),
    "wgmma f16 conv2d": Case("conv2d", "cuda/wgmma.*k16.f16.f32", IMAGE | F16),
    "wgmma f16 conv2d strided": Case("conv2d", "cuda/wgmma.*k16.f16.f32", IMAGE | F16 | {"stride": 2, "kw": 1}),
}
"""By kind of instruction, as the first word says: of threads, of warps with opaque fragments, of warps, of warps that
the machine replaces by a sequence of others, and of those that read shared memory."""


@dataclass(frozen=True)
class Row:
    """What a row's space derives, and what its first kernel takes as it would run. `counted`: registers, or where roles
    hand them over what the launch gives, which is what NVRTC then reports."""

    case: str
    instruction: str
    plan: int
    row: int
    counted: int
    limit: int
    taken: int
    spilled_bytes: int
    warnings: tuple[str, ...]

    @property
    def ratio(self) -> float:
        return self.taken / self.counted

    @property
    def underestimated(self) -> bool:
        """The kernel spills though it takes more than is derived."""
        return self.spilled_bytes > 0 and self.taken > self.counted


def plans_of(case: Case, target: Target) -> list[Plan]:
    program = resolve(case.workload, case.sizes)
    found = match(program, usable(Catalogue.builtin(), target, "simulator", [case.only]), case.numerics)
    return make_plans(program, target, candidates_of(found), 1)


def rows_of(name: str, seed: int, count: int) -> Iterator[Row]:
    """`count` rows, of the case's plans in turn."""
    case = CASES[name]
    target = load_target(case.target)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    found = plans_of(case, target)
    drawn = [iter(np.ravel(p.space.sample(count, rng))) for p in found]
    for n in range(count):
        at = n % len(found)
        row = int(next(drawn[at]))
        yield measured(name, at, found[at], row, target)


def measured(name: str, number: int, plan: Plan, row: int, target: Target) -> Row:
    (part, *_) = plan.tensor_parts
    values = plan.space.values(row)
    value = {n: int(values[part.names(n)][0]) for n in ("registers", "register_limit", *HANDED)}
    handed = value["producer_warps"] and value["worker_registers"] < target.limits["registers_per_thread"]
    source = print_cuda(lower(plan, plan.space.schedule(row)), target)
    cubin = compile_cuda(source.text, source.arch, source.headers)
    got = cubin.kernels[source.plan.launches[0].kernel]
    return Row(
        name,
        part.nest.intrinsic.name,
        number,
        row,
        value["entry_registers"] if handed else value["registers"],
        value["register_limit"],
        got.registers,
        got.spill_store_bytes + got.spill_load_bytes,
        cubin.warnings,
    )


def table(rows: list[Row]) -> Iterator[str]:
    """A line a kind, and one a case."""
    for words in (1, None):
        yield f"{'':28} rows    5 %  median   95 %   within 12 %  25 %   spill, underestimated"
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(" ".join(row.case.split()[:words]), []).append(row)
        for name, mine in groups.items():
            ratio = np.array([r.ratio for r in mine])
            low, middle, high = np.quantile(ratio, (0.05, 0.5, 0.95))
            near, nearby = ((np.abs(ratio - 1) <= w + 1e-9).mean() for w in (NEAR, NEARBY))
            spill, wrong = sum(r.spilled_bytes > 0 for r in mine), sum(r.underestimated for r in mine)
            shares = f"{low:5.2f}   {middle:5.2f}  {high:5.2f}   {near:8.0%}  {nearby:6.0%}"
            yield f"{name:28} {len(mine):4}  {shares}   {spill}, {wrong}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=20, help="of each case")
    parser.add_argument("--only", default="*", help="cases")
    parser.add_argument("--json", type=Path, help="a file to which each row is added as a line")
    asked = parser.parse_args()
    rows = []
    for name in (n for n in CASES if fnmatchcase(n, asked.only)):
        for row in rows_of(name, asked.seed, asked.rows):
            rows.append(row)
            if asked.json:
                with asked.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
