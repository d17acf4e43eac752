"""Exported C against the JIT: one kernel both ways, built as its header says, timed in turns on one thread.

    python -m benchmarks.exported                    # gcc, clang and the ziglang wheel, whichever are here
    python -m benchmarks.exported --trials 8 --compilers gcc,clang-14 softmax
    python -m benchmarks.exported --also '-O3 -march=native' --store /tmp/studies attention_decode matmul_int4

Each compiler builds with the header's flags, and with `--also` once more with those behind them. Times are CPU time of
the thread, so that a busy neighbour matters less.
"""

from __future__ import annotations

import argparse
import ctypes
import shlex
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.common.tuning import Request, tune

BYTES = {"a": "u8", "b": "s8", "acc": "s32"}
IMAGE = {"h": 28, "w": 28, "ci": 64, "co": 64, "kh": 3, "kw": 3, "pad": 1}
WEIGHTS = {"n": 1024, "k": 1024, "g": 128}
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("matmul", {"m": 256, "n": 256, "k": 256}),
    ("matmul", {"m": 256, "n": 256, "k": 256, "a": "u8", "b": "s8"}),
    ("matmul", {"m": 127, "n": 255, "k": 129}),
    ("matmul_bias_gelu", {"m": 128, "n": 256, "k": 256, "gelu": "erf"}),
    ("matmul_requant", {"m": 128, "n": 256, "k": 256}),
    ("conv2d_bias_relu", {**IMAGE, "residual": 1}),
    ("conv2d", {"h": 14, "w": 14, "ci": 256, "co": 256, "kh": 3, "kw": 3, "pad": 1, "layout": "nchw"}),
    ("conv2d", {**IMAGE, "layout": "nhwc", **BYTES}),
    ("conv2d", {**IMAGE, "layout": "nchw", **BYTES}),
    ("depthwise_conv2d", {"h": 56, "w": 56, "c": 128, "layout": "nhwc"}),
    ("depthwise_conv2d", {"h": 56, "w": 56, "c": 128, "layout": "nchw"}),
    ("depthwise_conv2d", {"h": 56, "w": 56, "c": 128, "layout": "nhwc", **BYTES}),
    ("depthwise_conv2d", {"h": 56, "w": 56, "c": 128, "layout": "nchw", **BYTES}),
    ("softmax", {"m": 512, "n": 128}),
    ("softmax", {"m": 256, "n": 1000}),
    ("layer_norm", {"m": 128, "n": 768}),
    ("elementwise", {"op": "gelu"}),
    ("attention_decode", {"b": 8, "h": 8, "l": 1024, "d": 64}),
    ("attention", {"h": 4, "n": 512, "l": 512, "d": 64}),
    ("attention", {"h": 4, "n": 512, "l": 512, "d": 64, "mask": "causal"}),
    ("inverted_residual", {"h": 28, "w": 28, "ci": 32, "c": 192, "co": 32}),
    *((f"matmul_{name}", {"m": 1, **WEIGHTS}) for name in ("int8", "int4", "fp8", "fp4", "fp4_packed")),
)
ROUNDS, SAMPLE_S = 21, 4e-3


def seconds_of(call: Callable[[], Any], repeats: int) -> float:
    started = time.thread_time()
    for _ in range(repeats):
        call()
    return (time.thread_time() - started) / repeats


def compilers_here() -> dict[str, list[str]]:
    """The commands of C compilers, by name."""
    here = {name: [name] for name in ("gcc", "clang") if shutil.which(name)}
    return here | ({"zig": [sys.executable, "-m", "ziglang", "cc"]} if find_spec("ziglang") else {})


@dataclass(frozen=True)
class Compiler:
    """`more`: flags behind those of the header."""

    command: list[str]
    more: str = ""


def compared(store: str, study: str, compilers: dict[str, Compiler]) -> dict[str, list[float]]:
    """Seconds of a call by `jit` and by each compiler, neighbouring samples at the same place."""
    import numpy as np

    from autosched.cli.stored import picked, plan_of
    from autosched.codegen.c import print_c
    from autosched.codegen.c.export.shared_library import build_shared
    from autosched.codegen.c_like.source import WORKSPACE
    from autosched.codegen.call.callable import CompiledKernel, aligned
    from autosched.codegen.llvm.machine.compile import compile_object
    from autosched.codegen.llvm.machine.jit import load
    from autosched.codegen.llvm.module import print_llvm
    from autosched.codegen.lower import lower
    from autosched.device.correctness.violations import measured_on
    from autosched.ir import random_inputs
    from autosched.ir.dtypes import DTYPES
    from autosched.store.sqlite import SqliteStore

    with SqliteStore(store, read_only=True) as opened:
        record, trials = opened.study(study), opened.trials(study)
    trial = picked(record, trials, None)
    plan = plan_of(record, trial)
    kernel = lower(plan, plan.space.schedule(trial.row))
    program = kernel.program
    compiled = CompiledKernel(kernel, load(compile_object(print_llvm(kernel))))
    held = {n: aligned(program.tensors[n].extents, program.tensors[n].dtype) for n in program.parameters}
    for name, values in random_inputs(measured_on(program, [plan]), np.random.default_rng(7)).items():
        held[name][...] = values
    packed = compiled.pack({n: held[n] for n in compiled.constants})
    pointers = compiled.pointers(held, packed)
    calls: dict[str, Callable[[], Any]] = {"jit": lambda: compiled.run_raw(*pointers)}
    code = print_c(kernel)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{code.name}.c"
        source.write_text(code.source)
        source.with_suffix(".h").write_text(code.header)
        work = aligned((max(1, code.workspace_bytes),), DTYPES["u8"])
        memory = {WORKSPACE: work} | packed | held
        arguments = [ctypes.c_void_p(memory[a].ctypes.data) for a in code.calls[-1][1]]
        for number, (name, compiler) in enumerate(compilers.items()):
            built = replace(code, flags=f"{code.flags} {compiler.more}")
            library = build_shared(built, source, kernel.isa, compiler.command)
            function = getattr(ctypes.CDLL(str(library.rename(library.with_name(f"{number}.so")))), code.name)
            calls[name] = partial(function, *arguments)
        for call in calls.values():
            call()
        repeats = max(1, int(SAMPLE_S / max(min(seconds_of(calls["jit"], 3) for _ in range(3)), 1e-7)))
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                times[name].append(seconds_of(call, repeats))
    return times


def share(one: list[float], other: list[float]) -> float:
    """The median of ratios of neighbouring samples."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("workloads", nargs="*", help="only these (default: all)")
    asked.add_argument("--trials", type=int, default=16)
    asked.add_argument("--compilers", help="commands of C compilers, by commas (default: those that are here)")
    asked.add_argument("--also", default="", help="flags with which each compiler builds once more")
    asked.add_argument("--store", help="a folder for the studies, which a later run finds there")
    options = asked.parse_args()
    named = {c: shlex.split(c) for c in options.compilers.split(",")} if options.compilers else compilers_here()
    compilers = {name: Compiler(command) for name, command in named.items()}
    if options.also:
        compilers |= {f"{name} {options.also}": Compiler(command, options.also) for name, command in named.items()}
    print("| kernel | JIT us |" + "".join(f" {c}: speed of JIT |" for c in compilers))
    print("|---|---|" + "---|" * len(compilers))
    with tempfile.TemporaryDirectory() as folder:
        folder = options.store or folder
        Path(folder).mkdir(exist_ok=True)
        for workload, sizes in CASES:
            if options.workloads and workload not in options.workloads:
                continue
            store = f"{folder}/exported.db"
            found = tune(Request(workload, sizes, store, trials=options.trials))
            label = f"{workload} {' '.join(str(v) for v in sizes.values())}"
            if found.best_s is None:
                print(f"| {label} | {found.error} |")
                continue
            times = compared(store, found.study, compilers)
            shares = "".join(f" {share(times['jit'], times[c]):.2f} |" for c in compilers)
            print(f"| {label} | {statistics.median(times['jit']) * 1e6:.1f} |{shares}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
