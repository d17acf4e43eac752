"""Seconds that the simulator takes for candidates drawn uniformly: python -m benchmarks.simulator_speed.

Candidates go through `build` and `measure`, as a search has them, in one thread; processor time is counted, so that
what else the machine does matters less. Lowering to the loop tree, which a search needs anyway, is a part of it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import autosched
from autosched.device.simulator.device import SimulatorDevice
from autosched.search.request import TuneRequest
from autosched.search.space.scored_space import space_of
from autosched.search.space.space import SearchSpace
from autosched.search.tuning.tune import plans_of
from autosched.tiling.candidate import Candidate

ASKED_S = 10.0
"""Seconds for a thousand candidates of a matrix product."""
CASES: dict[str, tuple[dict[str, Any], str, int, tuple[str, ...]]] = {
    "bf16 4096³ on an H200": ({"m": 4096, "n": 4096, "k": 4096, "t": "bf16"}, "nvidia-h200", 1, ()),
    "f16 1024³ by WMMA": ({"m": 1024, "n": 1024, "k": 1024, "t": "f16"}, "nvidia-h200", 1, ("cuda/wmma*",)),
    "f32 512³ on AVX-512": ({"m": 512, "n": 512, "k": 512}, "x86-avx512", 2, ()),
}
"""Sizes and types of a `matmul`, target, threads, and the instructions where they are not all."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line a case, and JSON to stdout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    rows = {}
    for name in CASES:
        rows[name] = row = speed(name, options.candidates, options.seed)
        print(f"{name}: {row['seconds']:.1f} s of a core for {row['candidates']} candidates, of which lowering"
              f" {row['lowering']:.1f} s (asked {ASKED_S:g} s for 1000)", file=sys.stderr)  # fmt: skip
    print(json.dumps({"schema": "autosched/benchmarks/simulator_speed/1", "rows": rows}))
    return 0


def speed(name: str, candidates: int, seed: int) -> dict[str, Any]:
    """Processor seconds for so many candidates of a case."""
    sizes, target, threads, only = CASES[name]
    program, machine = autosched.workload("matmul", **sizes), autosched.target(target)
    space = space_of(plans_of(TuneRequest(program, machine, threads=threads, only=only))[1], threads=1)
    device = SimulatorDevice(program, machine, threads=threads)
    drawn = sample(space, candidates, np.random.default_rng(seed))
    start, lowering = time.process_time(), 0.0
    for candidate in drawn:
        before = time.process_time()
        build = device.build(candidate)
        lowering += time.process_time() - before
        device.measure(build)
    seconds = time.process_time() - start
    return {"candidates": len(drawn), "seconds": seconds, "lowering": lowering}


def sample(space: SearchSpace, n: int, rng: np.random.Generator) -> list[Candidate]:
    """Legal rows of all plans, each as likely as any other."""
    return space.candidates(space.locate(rng.integers(0, space.rows, n)))


if __name__ == "__main__":
    sys.exit(main())
