"""Record the spaces of benchmarks/recorded by `autosched record`, and keep what is there up to date.

    python -m benchmarks.record --folder new                     # all measured spaces, one to six minutes each
    python -m benchmarks.record --simulated --folder new         # GEMMs on the simulated H200: the same times anywhere
    python -m benchmarks.record --complete --folder new          # whole spaces, some minutes in all
    python -m benchmarks.record --reclock                        # today's clock and features for what was measured
    python -m benchmarks.record --again                          # and the fastest rows measured anew, in turn
    python -m benchmarks.record --anew                           # all rows measured anew by today's code, to NAME_anew

Of simulated spaces as many rows of each plan, since plans of narrow instructions have far more rows than those worth
searching. `benchmarks.model_quality` judges models on these files (docs/replay.md).
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from autosched.search.evaluate.recorder import RowDone, again, rescored
from autosched.store.replay_file import read_replay, write_replay

FOLDER = Path(__file__).with_name("recorded")
SPACES: dict[str, tuple[str, dict[str, Any]]] = {
    "gemm_f32_512": ("matmul", {"m": 512, "n": 512, "k": 512}),
    "conv_f32_28x28x128": ("conv2d", {"n": 1, "h": 28, "w": 28, "ci": 128, "co": 128, "t": "f32", "acc": "f32"}),
    "depthwise_f32_56x56x128": ("depthwise_conv2d", {"n": 1, "h": 56, "w": 56, "c": 128}),
}
"""The spaces that the targets of model quality are stated for."""
ANEW = "_anew"
"""What the name of a recording ends with whose rows are an older one's: strategies stay with the older one, on which
their results are."""
VISITS = 3
HELD_OUT: dict[str, tuple[str, dict[str, Any]]] = {
    "gemm_u8s8_384x768x640": ("matmul", {"m": 384, "n": 768, "k": 640, "a": "u8", "b": "s8"}),
    "conv_f32_14x14x256": ("conv2d", {"n": 1, "h": 14, "w": 14, "ci": 256, "co": 256, "t": "f32", "acc": "f32"}),
    "depthwise_f32_56x56x144_s2": ("depthwise_conv2d", {"n": 1, "h": 56, "w": 56, "c": 144, "stride": 2}),
}
"""Other shapes, on which a change of the clock must not make things worse."""
SIMULATED: dict[str, tuple[str, dict[str, Any]]] = {
    "h200_bf16_4096x4096x4096": ("matmul", {"m": 4096, "n": 4096, "k": 4096, "a": "bf16", "b": "bf16"}),
    "h200_bf16_256x7168x2048": ("matmul", {"m": 256, "n": 7168, "k": 2048, "a": "bf16", "b": "bf16"}),
    "h200_f16_2048x2048x2048": ("matmul", {"m": 2048, "n": 2048, "k": 2048, "a": "f16", "b": "f16"}),
}
"""On the simulator's H200, with its seeded noise of 1 %."""
COMPLETE = {
    "row_norms_200x77": ["benchmarks/programs/row_norms.py"],
    "softmax": ["softmax"],
    "layer_norm_cold": ["layer_norm", "--cache", "cold"],
    "gemm_f32_4x4x4096": ["matmul", "-D", "m=4", "-D", "n=4", "-D", "k=4096"],
    "batch_matmul_64x3x3x5": ["batch_matmul", "-D", "batch=64", "-D", "m=3", "-D", "n=3", "-D", "k=5"],
    "byte_dots_64x150": ["benchmarks/programs/byte_dots.py", "-i", "x86/vpdpbusd.zmm"],
}
"""Whole spaces of some hundred rows, each in minutes, in the folder `complete`: where the optimum is known, and where
the clock ranks well and poorly."""
ROWS = {
    **dict.fromkeys(SPACES, 2048),
    **dict.fromkeys(HELD_OUT, 512),
    **dict.fromkeys(SIMULATED, 4096),
    "h200_f16_2048x2048x2048": 16384,
}


def file_of(name: str, folder: Path = FOLDER) -> Path:
    """Where a space's recording is kept."""
    return (folder / "complete" if name in COMPLETE else folder) / f"{name}.json.gz"


def command(name: str, folder: Path = FOLDER, jobs: int = 1) -> list[str]:
    """The `autosched` command that records a space, or goes on with it."""
    if name in COMPLETE:
        return ["record", *COMPLETE[name], "--all", "-o", str(file_of(name, folder))]
    workload, sizes = (SPACES | HELD_OUT | SIMULATED)[name]
    words = ["record", workload, *(word for size, value in sizes.items() for word in ("-D", f"{size}={value}"))]
    where = ["-t", "nvidia-h200", "-d", "simulator", "--even", "--jobs", str(jobs)] if name in SIMULATED else []
    return [*words, *where, "--rows", str(ROWS[name]), "-o", str(file_of(name, folder))]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=[*ROWS, *COMPLETE], metavar="SPACE")
    parser.add_argument("--simulated", action="store_true", help="those on the simulator")
    parser.add_argument("--complete", action="store_true", help="whole spaces of some hundred rows")
    parser.add_argument("--reclock", action="store_true", help="measure nothing: what the engine says of them today")
    parser.add_argument("--again", action="store_true", help="measure the fastest rows of what is kept anew")
    parser.add_argument("--anew", action="store_true", help=f"measure all rows of what is kept in {VISITS} visits")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share a simulated space")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="another folder than benchmarks/recorded")
    options = parser.parse_args(arguments)
    every = COMPLETE if options.complete else SIMULATED if options.simulated else SPACES | HELD_OUT
    chosen = options.only or list(every)
    if options.reclock:
        return _reclock([file_of(name, options.folder) for name in chosen])
    if options.again or options.anew:
        return _again([file_of(name, options.folder) for name in chosen], options.anew)
    for name in chosen:
        file_of(name, options.folder).parent.mkdir(parents=True, exist_ok=True)
        words = command(name, options.folder, options.jobs)
        print(shlex.join(["autosched", *words]), flush=True)
        status = subprocess.run([sys.executable, "-m", "autosched", *words], check=False).returncode
        if status:
            return status
    return 0


def _reclock(paths: list[Path]) -> int:
    """Rewrite recordings with decisions, clock and derived quantities of today; times stay."""
    for path in paths:
        recording, lost = rescored(read_replay(path))
        write_replay(path, recording)
        print(f"{path.name}: {len(recording)} rows" + (f", {lost} without a place left out" if lost else ""))
    return 0


def _again(paths: list[Path], anew: bool) -> int:
    """Rewrite recordings with their fastest rows measured anew, or write one beside each with all of them so."""
    for path in paths:
        name = path.name.removesuffix(".json.gz")
        before = read_replay(path)
        recording = again(before, visits=VISITS if anew else 0, on_row=_say(name))
        if anew:
            recording = replace(recording, created=time.strftime("%Y-%m-%d", time.gmtime()))
            path = path.with_name(f"{name}{ANEW}.json.gz")
        write_replay(path, recording)
        print(f"\r{path.name}: best {recording.best_s * 1e6:.1f} us, was {before.best_s * 1e6:.1f}", flush=True)
    return 0


def _say(name: str) -> Any:
    def say(done: RowDone) -> None:
        if done.done % 50 == 0:
            print(f"\r{name}: {done.done} of {done.total}", end="", file=sys.stderr, flush=True)

    return say


if __name__ == "__main__":
    raise SystemExit(main())
