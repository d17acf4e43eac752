"""The analytic clock against published tables of GEMM on Hopper: `python -m benchmarks.published [FOLDER]`.

FOLDER holds `hopper_bf16_ladder.csv` (a hand-written kernel, one idea after the other, on an H100) and
`hopper_fp8_gemm.csv` (DeepGEMM's first release, on an H800, whose tensor cores and memory are the H100's). For each
line the best legal row of our space is taken (of those rows with the ladder's decisions), and what the clock says of
it, with the constants of hand-written code (`HANDWRITTEN`). Nothing is measured, and no constant of the
clock was fitted to the second table.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.gpu.code_constants import GENERATED
from autosched.costmodel.analytic.gpu.gpu_clock import TERMS
from autosched.ir import resolve
from autosched.ir.program import Program
from autosched.logic import Var, any_of
from autosched.machine.catalogue import load_target
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.space import Space
from autosched.tiling.step import Rule, Step
from autosched.tiling.variants.conditional import candidates_of

FOLDER = Path(__file__).parent / "recorded"
HANDWRITTEN = replace(
    GENERATED, slice_cycles=0.0, arrival_spread=0.0, meeting_cycles=0.0, cluster_share=1.0, multicast=1.0
)
"""Of hand-written kernels: without what ours lose by waiting for products and in clusters. `multicast` is that of
DeepGEMM's performance model, which divides what a core takes from L2 by the blocks of its cluster that share it."""
WIDTHS = (16, 32, 48, 64, 96, 112, 128, 160, 192)
"""The instruction's n in the second table: what DeepGEMM's first release had among its block widths, and its like."""


@dataclass(frozen=True)
class Line:
    """One line of a table: what was published and what the clock says, in TFLOP/s; the row and its longest term."""

    name: str
    published: float
    predicted: float
    schedule: str
    bound: str

    @property
    def error(self) -> float:
        return self.predicted / self.published - 1


def best(plan: Plan, wanted: Mapping[str, Sequence[int]]) -> tuple[float, int, str]:
    """Seconds, row and longest term of the plan's fastest legal row whose decisions are among those wanted."""
    space = plan.space
    wishes = tuple(
        Rule(f"wanted {name}", any_of(*(Var(name).eq(n) for n in among)), f"another {name} is wanted")
        for name, among in wanted.items()
    )
    ids = Space(space.name, [*space.steps, Step("wanted", (), wishes)], space.constants).enumerate().ids
    values = space.values(ids)
    if not len(ids):
        raise LookupError(f"no legal row of {plan.name} has {dict(wanted)}")
    terms = clock(plan, {name: values[name] for name in plan.space.names}, HANDWRITTEN)
    k = int(np.argmin(terms["total"]))
    return float(terms["total"][k]), int(ids[k]), max(TERMS, key=lambda t: float(terms[t][k]))


def plan_on(program: Program, intrinsic: str) -> Plan:
    """The plan of a product on one instruction of the H100, rows along rows."""
    target = load_target("nvidia-h100")
    found = match(program, [Catalogue.builtin()[intrinsic].on(target.features)], "real")
    plans = make_plans(program, target, candidates_of(found))
    return next(p for p in plans if "(i←i, j←j," in p.name)


def ladder(folder: Path = FOLDER) -> list[Line]:
    """The seven distinct configurations, each with the best throughput published for it last."""
    program = resolve("matmul_nt", {"m": 4096, "n": 4096, "k": 4096, "a": "bf16", "b": "bf16", "out": "bf16"})
    published: dict[tuple[str, ...], tuple[str, float]] = {}
    for row in _rows(folder / "hopper_bf16_ladder.csv"):
        key = tuple(v for k, v in row.items() if k not in ("step", "tflops"))
        published.setdefault(key, (row["step"], float(row["tflops"])))
    lines = []
    for key, (step, tflops) in published.items():
        m, n, k, specialised, consumers, persistent, cluster, _, store = key
        plan = plan_on(program, f"cuda/wgmma.m64n{n}k16.bf16.f32")
        wanted = {
            "tile_i": [int(m) // 64],
            "groups_i": [int(consumers)],
            "tile_j": [1],
            "block_p": [int(k) // 16],
            "copy": [2],
            "roles": [int(specialised)],
            "stages": [2, 3, 4, 6] if int(specialised) else [1],
            "persistent": [int(persistent)],
            "group": [1, 8] if int(persistent) else [1],
            "cluster": [1, 2] if int(cluster) > 1 else [0],
            "split": [1],
            "epilogue": [2] if store == "tma" else [0],
        }
        lines.append(_line(step, tflops, 2.0 * 4096**3, plan, wanted))
    return lines


def fp8(folder: Path = FOLDER, widths: Sequence[int] = WIDTHS) -> list[Line]:
    """The best legal row of each shape; partial sums are emptied every 128 terms, as in the published kernel."""
    lines = []
    for row in _rows(folder / "hopper_fp8_gemm.csv"):
        m, n, k = (int(row[x]) for x in "mnk")
        program = resolve("matmul_nt", {"m": m, "n": n, "k": k, "a": "e4m3", "b": "e4m3", "out": "bf16"})
        name = f"{m} x {n} x {k}"
        found = [
            _line(name, float(row["tflops"]), 2.0 * m * n * k, plan, {"block_p": [4], "promote": [1]})
            for plan in (plan_on(program, f"cuda/wgmma.m64n{w}k32.e4m3.e4m3.f32") for w in widths)
        ]
        lines.append(max(found, key=lambda line: line.predicted))
    return lines


def spearman(lines: Sequence[Line]) -> float:
    """Rank correlation of what is predicted with what was published."""
    ranks = [np.argsort(np.argsort([getattr(x, what) for x in lines])) for what in ("predicted", "published")]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def median_error(lines: Sequence[Line]) -> float:
    return float(np.median([abs(x.error) for x in lines]))


def table(lines: Sequence[Line]) -> str:
    """The lines as text."""
    shown = [f"{'':28} {'published':>9} {'clock':>6} {'error':>6}  bound by  row"]
    for x in lines:
        figures = f"{x.published:9.0f} {x.predicted:6.0f} {100 * x.error:+5.0f} %"
        shown.append(f"{x.name:28} {figures}  {x.bound:8}  {x.schedule}")
    return "\n".join(shown)


def _line(name: str, published: float, operations: float, plan: Plan, wanted: Mapping[str, Sequence[int]]) -> Line:
    seconds, row, bound = best(plan, wanted)
    schedule = "  ".join(f"{k}={v}" for k, v in plan.space.schedule(row).named.items())
    width = plan.intrinsics[0].split("k")[0].split("/")[1]
    return Line(name, published, operations / seconds / 1e12, f"{width} {schedule}", bound)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="of the two tables")
    folder = parser.parse_args().folder
    steps = ladder(folder)
    print(table(steps))
    print(f"rank correlation {spearman(steps):.3f}\n")
    shapes = fp8(folder)
    print(table(shapes))
    print(f"rank correlation {spearman(shapes):.3f}, median error {100 * median_error(shapes):.0f} %")


if __name__ == "__main__":
    main()
