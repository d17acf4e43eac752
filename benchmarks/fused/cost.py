"""What tuning a fused chain costs, against tuning its parts apart: processor seconds and wall time, interleaved.

    python -m benchmarks.fused.cost                                    # a case of every group, 16 trials, 3 rounds
    python -m benchmarks.fused.cost --only 'attention/causal/f32/*' --rounds 5

Every round tunes the chain and each of its parts anew, each in a fresh process and with as many trials, in alternating
order. Seconds count from the call of `tune` on (interpreter and imports are the same for all), those of compilers and
of processes that measure included. A ratio is the median of rounds. Parts are those of `benchmarks.fused.cases`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from statistics import median

from benchmarks.common.tuning import Request, Tuned, tune
from benchmarks.cpu import machine
from benchmarks.fused.cases import CASES, Case, Part
from benchmarks.fused.command import revision

DEFAULT = (
    "attention/full/f32/h8_n512_d64", "attention/causal/f32/h8_n512_d64", "feed_forward/swiglu/f32/m96_k768_f2048",
    "feed_forward/mlp/f32/m96_k768_f2048", "separable/depthwise/56x56_128_128", "separable/conv2d/56x56_64_64_256",
    "quantized/int4/m16_n1024_k1024_g128",
)  # fmt: skip
ASKED = 1.5
"""The greatest ratio of processor seconds, chain to parts."""
PHASES = ("match", "search", "build", "check", "measure", "model", "other")


@dataclass(frozen=True)
class Cost:
    """One round: what the chain took and what its parts took together. `of_chain` and `of_parts` split the wall time by
    phase."""

    chain_cpu_s: float
    parts_cpu_s: float
    chain_wall_s: float
    parts_wall_s: float
    of_chain: dict[str, float]
    of_parts: dict[str, float]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fused.cost", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--only", nargs="*", metavar="GLOB", help="names of cases, as 'attention/*'")
    parser.add_argument("--trials", type=int, default=16, help="of the chain and of each part (default: 16)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rounds to this file")
    options = parser.parse_args(arguments)
    cases = [c for c in CASES if any(fnmatch(c.name, glob) for glob in options.only or DEFAULT)]
    if not cases:
        parser.error(f"no case fits {' '.join(options.only)}; `python -m benchmarks.fused --full --list` has the names")
    rows: dict[str, list[Cost]] = {}
    missed = 0
    with tempfile.TemporaryDirectory(prefix="autosched-cost-") as folder:
        for case in cases:
            found = _rounds(case, Path(folder), options)
            if isinstance(found, str):
                print(f"{case.name}: {found}", flush=True)
                missed += 1
                continue
            rows[case.name] = found
            print(line(case, found), flush=True)
    if options.json is not None:
        about = {"schema": "autosched/benchmarks/fused-cost/1", "machine": machine(), "code": revision(),
                 "trials": options.trials, "threads": options.threads}  # fmt: skip
        data = about | {"rows": {name: [asdict(c) for c in costs] for name, costs in rows.items()}}
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 1 if missed else 0


def _rounds(case: Case, folder: Path, options: argparse.Namespace) -> list[Cost] | str:
    """The rounds of a case, or the error of a program that cannot be tuned."""
    chain, parts = Part(case.workload, case.sizes), case.apart[0].parts
    found: list[Cost] = []
    for number in range(options.rounds):
        print(f"… {case.name}, round {number + 1}", file=sys.stderr, flush=True)
        taken: dict[int, Tuned] = {}
        programs = [chain, *parts]
        for at in range(len(programs)) if number % 2 else reversed(range(len(programs))):
            part = programs[at]
            store = folder / "studies.db"  # beside it are the machine's figures, which are measured once
            request = Request(part.workload, part.sizes, str(store), part.packed, options.threads, options.trials,
                              file=part.path)  # fmt: skip
            taken[at] = tune(request)
            store.unlink(missing_ok=True)
            if not taken[at].study:
                return f"{part.workload}: {taken[at].error}"
        found.append(cost_of(taken[0], [taken[k] for k in range(1, len(programs))]))
    return found


def cost_of(chain: Tuned, parts: Sequence[Tuned]) -> Cost:
    return Cost(
        chain.cpu_s,
        sum(p.cpu_s for p in parts),
        chain.seconds["total"],
        sum(p.seconds["total"] for p in parts),
        {phase: chain.seconds.get(phase, 0.0) for phase in PHASES},
        {phase: sum(p.seconds.get(phase, 0.0) for p in parts) for phase in PHASES},
    )


def line(case: Case, costs: Sequence[Cost]) -> str:
    """Medians: the ratios, and where the time went."""
    cpu = median(c.chain_cpu_s / c.parts_cpu_s for c in costs)
    wall = median(c.chain_wall_s / c.parts_wall_s for c in costs)
    own, apart = (median(c.chain_cpu_s for c in costs), median(c.parts_cpu_s for c in costs))
    spans = (median(c.chain_wall_s for c in costs), median(c.parts_wall_s for c in costs))
    verdict = "" if cpu <= ASKED else f" (asked {ASKED:.1f} at most)"
    split = ", ".join(
        f"{phase} {median(c.of_chain[phase] for c in costs):.1f} to {median(c.of_parts[phase] for c in costs):.1f}"
        for phase in PHASES
    )
    return (
        f"{case.name}: {cpu:.2f} of the parts' processor time{verdict}, {own:.1f} s to {apart:.1f} s; "
        f"{wall:.2f} of their wall time, {spans[0]:.1f} s to {spans[1]:.1f} s\n  wall time by phase: {split}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
