"""Products on weights of 8 and 4 bits with f32 activations, on one core: beside PyTorch, and beside what limits them.

    python -m benchmarks.narrow [--trials 64] [--rounds 101] [--group 128] [NAME…]

One row, of the roofline: the bytes of the weights, scales and zero points as they lie, read by a plain loop, or the
instructions that conversion needs, at the rate at which a loop of nothing else runs on data of the first cache; the
longer of both. Sixteen rows, of the speed of our own f32 product whose weights a cache holds. All in turn in one
process; ratios are medians of neighbours in time, and of the best samples of each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

import autosched
from autosched.codegen.call.callable import aligned
from autosched.ir import random_inputs, run
from autosched.ir.program import Program
from benchmarks import cpus
from benchmarks.narrow_mix import ConversionMix, lanes
from benchmarks.sampling import quartiles
from benchmarks.stream import Stream

SHAPES = ((4096, 4096), (4096, 1024))
"""(k, n)."""
BURST_S = 2e-3
"""Calls of one sample last this long together: less than what a busy machine gives a process at a time."""
FAR_BEHIND = 20.0
"""Peers that take so many times as long are timed once."""
CACHED = (16, 512, 256)
"""Rows, k and n of the f32 product whose weights a cache holds."""


@dataclass(frozen=True)
class Ours:
    """A tuned kernel as a caller from C would call it: weights laid out before."""

    program: Program
    call: Callable[[], None]
    data: dict[str, Any]
    operations: int
    plan: str


def tuned(program: Program, target: Any, trials: int, seed: int = 0) -> Ours:
    study = autosched.tune(program, target=target, trials=trials, store=":memory:", seed=seed)
    assert study.best is not None
    kernel: Any = study.best.build()
    drawn = random_inputs(program, np.random.default_rng(7))
    arrays = {n: aligned(t.extents, t.dtype) for n, t in program.tensors.items() if n in program.parameters}
    for name in program.inputs:
        arrays[name][...] = drawn[name]
    packed = kernel.pack({n: arrays[n] for n in kernel.constants})
    pointers, raw = kernel.pointers(arrays, packed), kernel.run_raw
    kept = (kernel, arrays, packed)

    def call(_kept: object = kept) -> None:
        raw(*pointers)

    call()
    (out,) = program.outputs
    wanted = run(program, drawn)[out]
    assert np.allclose(arrays[out], wanted, rtol=1e-3, atol=1e-3 * float(np.abs(wanted).max()))
    (stage,) = (s for s in program.stages if s.reduction)
    return Ours(program, call, arrays, 2 * prod(a.extent for a in stage.axes), f"{study.best.schedule}")


def burst(call: Callable[[], object], repeats: int) -> float:
    """Seconds of one call, after one that brings its data back."""
    call()
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - started) / repeats


def torch_calls(ours: Ours, bits: int, group: int) -> dict[str, Callable[[], Any]]:
    """What PyTorch has for the same job, on weights of its own layout: exact ones in f32, ones of so many bits, and
    dynamic quantisation, which rounds the activations too."""
    import torch
    from torch.ao.nn.quantized import dynamic

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    x = torch.from_numpy(np.ascontiguousarray(ours.data["X"]))
    k, n = ours.data["W"].shape
    wide = torch.randn(n, k)
    found: dict[str, Callable[[], Any]] = {"f32 linear": lambda: torch.nn.functional.linear(x, wide)}
    halves = x.to(torch.bfloat16)
    if bits == 8:
        whole, scales = torch.randint(-128, 127, (n, k), dtype=torch.int8), torch.rand(n, dtype=torch.bfloat16)
        found["_weight_int8pack_mm bf16"] = lambda: torch._weight_int8pack_mm(halves, whole, scales)
        if hasattr(torch.ops.aten, "_weight_int8pack_mm"):
            scales32 = scales.float()
            found["_weight_int8pack_mm f32"] = lambda: torch._weight_int8pack_mm(x, whole, scales32)
    else:
        raw = torch.randint(0, 15, (n, k), dtype=torch.int32)
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(raw, 1)
        for name, rows, kind in (("bf16", halves, torch.bfloat16), ("f32", x, torch.float32)):
            both = torch.rand(k // group, n, 2, dtype=kind)
            found[f"_weight_int4pack_mm {name}"] = lambda rows=rows, both=both: (
                torch.ops.aten._weight_int4pack_mm_for_cpu(rows, packed, group, both)
            )
    linear = torch.nn.Linear(k, n)
    quick: Any = dynamic.Linear.from_float(_prepared(torch, linear))
    found["dynamic s8"] = lambda: quick(x)
    usable = {}
    for name, call in found.items():
        try:
            call()
        except RuntimeError as error:
            print(f"    PyTorch {name}: {str(error).splitlines()[0][:90]}")
        else:
            usable[name] = call
    return usable


def _prepared(torch: Any, linear: Any) -> Any:
    linear.qconfig = torch.ao.quantization.default_dynamic_qconfig
    return linear


def compare(name: str, rows: int, shape: tuple[int, int], target: Any, cached: Ours, given: Any) -> None:
    """Lines of one product: our time, its share of the limits, and each peer's ratio."""
    k, n = shape
    program = autosched.workload(name, m=rows, k=k, n=n, g=given.group)
    ours = tuned(program, target, given.trials)
    bits = 4 if name == "matmul_int4" else 8
    narrow = sum(t.dtype.bits * prod(t.extents) // 8 for t in program.tensors.values() if t.const)
    print(f"{name} {rows}x{k}x{n}, groups of {given.group}: {narrow / 1e6:.1f} MB   {ours.plan}")
    stream, mix = Stream(narrow, 4 * rows * n, 1), ConversionMix(bits)
    peers = torch_calls(ours, bits, given.group) if given.torch else {}
    calls = {"ours": ours.call, "f32 of a cache": cached.call, **peers}
    once = {c: min(burst(call, 1) for _ in range(3)) for c, call in calls.items()}
    for c in [c for c in peers if once[c] > FAR_BEHIND * once["ours"]]:
        print(f"    PyTorch {c:<26} {once[c] * 1e6:8.1f} us, once")
        del calls[c], peers[c]
    repeats = {c: max(1, int(BURST_S / once[c])) for c in calls}
    samples: dict[str, list[float]] = {c: [] for c in (*calls, "loop", "mix")}
    for _ in range(given.rounds):
        for c, call in calls.items():
            samples[c].append(burst(call, repeats[c]))
        samples["loop"].append(min(stream.sample("cached"), stream.sample("columns")))
        samples["mix"].append(mix.sample() * n * k / lanes())
    took = quartiles(samples["ours"])
    memory, instructions = stream.best_s, mix.best_s * n * k / lanes()
    speed = ours.operations / took[1] / 1e9
    print(f"    {took[1] * 1e6:8.1f} us ({took[0] * 1e6:.1f} to {took[2] * 1e6:.1f})  {speed:7.1f} GFLOP/s")
    print(f"    {narrow / took[1] / 1e9:8.1f} GB/s of weights as they lie")
    if rows == 1:
        limit = max(memory, instructions)
        turns = zip(samples["loop"], samples["mix"], samples["ours"], strict=True)
        low, middle, high = quartiles([max(a, b) / c for a, b, c in turns])
        print(
            f"    limits: bytes {memory * 1e6:.1f} us ({narrow / memory / 1e9:.1f} GB/s), instructions "
            f"{instructions * 1e6:.1f} us: {limit / min(samples['ours']):.0%} of the longer at best, "
            f"{middle:.0%} in turn ({low:.0%} to {high:.0%})"
        )
    else:
        ratios = [
            (ours.operations / a) / (cached.operations / b)
            for a, b in zip(samples["ours"], samples["f32 of a cache"], strict=True)
        ]
        low, middle, high = quartiles(ratios)
        best = ours.operations / min(samples["ours"]) / cached.operations * min(samples["f32 of a cache"])
        print(
            f"    {middle:.2f} of the speed of our f32 product of cached weights ({low:.2f} to {high:.2f}), "
            f"{best:.2f} at best"
        )
    for c in peers:
        low, middle, high = quartiles([b / a for a, b in zip(samples["ours"], samples[c], strict=True)])
        us, best = quartiles(samples[c])[1] * 1e6, min(samples[c]) / min(samples["ours"])
        print(f"    PyTorch {c:<26} {us:8.1f} us  ratio {middle:.2f} ({low:.2f} to {high:.2f}), {best:.2f} at best")


def main() -> None:
    names = ("matmul_int8", "matmul_int4")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--group", type=int, default=128, help="weights of a column that share a scale (default 128)")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--no-torch", dest="torch", action="store_false")
    given = parser.parse_args()
    own = cpus.chosen(1)
    cpus.hold(own)
    target = autosched.target("native")
    m, k, n = CACHED
    cached = tuned(autosched.workload("matmul", m=m, k=k, n=n), target, given.trials)
    print(f"f32 {m}x{k}x{n} of a cache   {cached.plan}")
    for name in given.names or names:
        for rows in given.rows:
            for shape in SHAPES:
                compare(name, rows, shape, target, cached, given)


if __name__ == "__main__":
    main()
