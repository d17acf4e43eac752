"""A stored study's best kernel in this process, with random inputs; as a server it times itself on demand.

    python -m benchmarks.common.kernel STORE STUDY THREADS     # answers seconds to each line `time` on stdin
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle

from autosched.ir.program import Program
from benchmarks.common import cpus
from benchmarks.common.sampling import repeats_of, time_calls
from benchmarks.peers.task import Array

PLACES = 8
"""Copies of the data that samples are taken on in turn. Which physical pages they lie on decides how sets of the caches
fill: of one f32 product of 512x512x512 it moved the time by 6 % from place to place, and otherwise one process has one
place."""


@dataclass(frozen=True)
class LoadedKernel:
    """`run` calls it as a caller from C would, without checks of arguments; `arrays` are the program's parameters,
    drawn within what the kernel checks (`within`: nothing for most). `largest` is the largest memory that it works on,
    packed data included. `elsewhere` answers the same on a copy of the arrays, `outside` on data of which some break a
    check, so that what stands by runs (None where nothing is checked)."""

    program: Program
    arrays: dict[str, Array]
    run: Callable[[], None]
    largest: Array
    elsewhere: Callable[[], Callable[[], None]]
    within: tuple[str, ...] = ()
    outside: Callable[[], None] | None = None


def load_kernel(
    store: str,
    study: str,
    prepare: Callable[[Program, dict[str, Array]], None],
    given: Mapping[str, Array] | None = None,
) -> LoadedKernel:
    """The best of a study. `prepare` is called before the kernel is loaded: libraries that bring an OpenMP runtime of
    their own must come first. `given` are parameters that lie elsewhere already, with values, in any shape; others are
    drawn."""
    import numpy as np

    from autosched.cli.stored import picked, plan_of
    from autosched.codegen.call.callable import CompiledKernel, aligned
    from autosched.codegen.llvm.machine.compile import compile_object
    from autosched.codegen.llvm.machine.jit import load
    from autosched.codegen.llvm.module import print_llvm
    from autosched.codegen.lower import lower
    from autosched.device.correctness.violations import measured_on
    from autosched.ir import parse, random_inputs
    from autosched.store.sqlite import SqliteStore

    with SqliteStore(store, read_only=True) as opened:
        record, trials = opened.study(study), opened.trials(study)
    trial = picked(record, trials, None)
    plan = plan_of(record, trial)
    lowered = lower(plan, plan.space.schedule(trial.row))
    program = parse(record.program, filename=record.name)

    def drawn_from(described: Program) -> dict[str, Array]:
        drawn = random_inputs(described, np.random.default_rng(7))
        made = {n: aligned(t.extents, t.dtype) for n, t in program.tensors.items() if n in program.parameters}
        for n in program.inputs:
            made[n][...] = drawn[n]
        return made

    held = drawn_from(measured_on(program, [plan]))
    held |= {n: array.reshape(program.tensors[n].extents) for n, array in (given or {}).items()}
    prepare(program, held)
    kernel = CompiledKernel(lowered, load(compile_object(print_llvm(lowered))))

    def on(arrays: dict[str, Array]) -> tuple[Callable[[], None], Array]:
        packed = kernel.pack({n: arrays[n] for n in kernel.constants})
        pointers, raw = kernel.pointers(arrays, packed), kernel.run_raw
        kept = (kernel, arrays, packed)  # whose memory the pointers are into

        def run(_kept: object = kept) -> None:
            raw(*pointers)

        used = [packed[n] if n in packed else arrays[n] for n in lowered.main.buffers if n in packed or n in arrays]
        return run, max(used, key=lambda array: array.nbytes)

    def copied() -> dict[str, Array]:
        fresh = {n: aligned(array.shape, program.tensors[n].dtype) for n, array in held.items()}
        for n, array in held.items():
            fresh[n][...] = array
        return fresh

    outside = on(drawn_from(program))[0] if plan.guards else None
    within = tuple(dict.fromkeys(c.text for m in plan.mappings for c in m.conditions))
    return LoadedKernel(program, held, *on(held), lambda: on(copied())[0], within, outside)


def main() -> None:
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.common.kernel", description=about)
    parser.add_argument("store", help="file of studies")
    parser.add_argument("study", help="name of the study whose best kernel runs")
    parser.add_argument("threads", type=int, help="threads of the kernel")
    options = parser.parse_args()
    own = cpus.chosen(options.threads)
    cpus.hold(own)
    kernel = load_kernel(options.store, options.study, lambda program, arrays: None)
    cpus.place(own)
    runs = [kernel.run, *(kernel.elsewhere() for _ in range(PLACES - 1))]
    for run in runs:
        run()
    repeats = repeats_of(kernel.run)
    print(json.dumps({"ready": True}), flush=True)
    for run, line in zip(cycle(runs), sys.stdin, strict=False):
        if line.strip() != "time":
            break
        print(json.dumps(time_calls(run, repeats)), flush=True)


if __name__ == "__main__":
    main()
