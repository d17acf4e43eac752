"""What a call of a built kernel adds to the kernel, and how many candidates a second are tuned of programs without
products: `python -m benchmarks.gpu.calls -o calls.json`, where a GPU and PyTorch are."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import autosched
from autosched.device.cuda.call.callable import CudaKernel
from autosched.device.cuda.cards import matching_target
from autosched.device.cuda.driver import shared_card
from autosched.ir import parse, workload
from autosched.ir.program import Program

ROUNDS, CALLS, RECORDED = 9, 400, 100
RMS_NORM = '''
def rms_norm(X: f16[m, n], G: const[f16[n]], Y: f16[m, n], *, m=8192, n=2048):
    """Y[i] = X[i] / rms(X[i]) * G."""
    S: f32[m]
    for i in range(m):
        S[i] = 0.0
        for j in range(n):
            S[i] += f32(X[i, j]) * f32(X[i, j])
        for j in range(n):
            Y[i, j] = f16(f32(X[i, j]) / sqrt(S[i] / n + 1e-5) * f32(G[j]))
'''
SCORES = '''
def scores(X: f16[h, m, n], Y: f16[h, m, n], *, h=16, m=1024, n=1024):
    """Weights of causal attention: a softmax over the keys up to each query."""
    M: f32[h, m]
    S: f32[h, m]
    for b, i in grid(h, m):
        M[b, i] = -inf
        for j in range(n):
            if j <= i:
                M[b, i] = max(M[b, i], f32(X[b, i, j]))
        S[b, i] = 0.0
        for j in range(n):
            if j <= i:
                S[b, i] += exp(f32(X[b, i, j]) - M[b, i])
        for j in range(n):
            Y[b, i, j] = f16(exp(f32(X[b, i, j]) - M[b, i]) / S[b, i]) if j <= i else f16(0.0)
'''


def without_products() -> dict[str, Program]:
    """Programs that are tuned for their rate of candidates."""
    return {
        "softmax f16 8192x2048": workload("softmax", m=8192, n=2048, t="f16"),
        "RMSNorm f16 8192x2048": parse(RMS_NORM),
        "attention weights f16 16x1024x1024": parse(SCORES),
    }


def called() -> dict[str, tuple[Program, Callable[[Any, Sequence[Any], Any], Any] | None]]:
    """Programs whose calls are timed, with the same by eager PyTorch into an output that is there."""
    f16 = {"a": "f16", "b": "f16", "out": "f16"}
    return {
        "sum of two matrices 256x256 f32": (
            workload("elementwise", op="add", m=256, n=256),
            lambda torch, x, out: torch.add(*x, out=out),
        ),
        "softmax 512x512 f32": (
            workload("softmax", m=512, n=512),
            lambda torch, x, out: torch.softmax(x[0], 1, out=out),
        ),
        "product 512x512x512 f16": (
            workload("matmul", m=512, n=512, k=512, **f16),
            lambda torch, x, out: torch.mm(*x, out=out),
        ),
        "product 64x4096x4096 f16, constants in place": (
            workload("matmul", m=64, n=4096, k=4096, **f16),
            lambda torch, x, out: torch.mm(*x, out=out),
        ),
    }


def issued(torch: Any, call: Callable[[], Any], calls: int = CALLS) -> float:
    """Seconds a call of so many one after the other, the wait for the last one included."""
    torch.cuda.synchronize()
    clock = time.perf_counter()
    for _ in range(calls):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - clock) / calls


def alone(torch: Any, call: Callable[[], Any]) -> Callable[[], float]:
    """Seconds that the GPU takes for one call, by a graph of calls."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(RECORDED):
            call()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def run() -> float:
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3 / RECORDED

    return run


def call_rows(target: Any, trials: int) -> list[dict[str, Any]]:
    """What calls take: medians of interleaved rounds, in microseconds."""
    import torch

    rows = []
    for name, (program, eager) in called().items():
        study = autosched.tune(program, target=target, device="cuda", trials=trials, seed=0)
        kernel = study.best.build()
        tensors = [program.tensors[p] for p in program.parameters]
        drawn = [torch.randn(t.extents, device="cuda").to(getattr(torch, TORCH[t.dtype.name])) for t in tensors]
        *inputs, out = drawn
        entrants: dict[str, Callable[[], Any]] = {"ours": lambda k=kernel, d=drawn: k(*d)}
        if kernel.constants:
            fast = kernel.prepack(**{n: drawn[program.parameters.index(n)] for n in kernel.constants})
            rest = [t for p, t in zip(program.parameters, drawn, strict=True) if p not in kernel.constants]
            entrants["ours, prepacked"] = lambda k=fast, d=rest: k(*d)
        if eager is not None:
            expected = torch.empty_like(out)
            eager(torch, inputs, expected)
            kernel(*drawn)
            assert torch.allclose(out.float(), expected.float(), rtol=2e-2, atol=0.3), name
            entrants["eager PyTorch"] = lambda e=eager, i=inputs, o=expected: e(torch, i, o)
        graphs = {n: alone(torch, call) for n, call in entrants.items()}
        wall: dict[str, list[float]] = {n: [] for n in entrants}
        card: dict[str, list[float]] = {n: [] for n in entrants}
        for _ in range(ROUNDS):
            for n, call in entrants.items():
                wall[n].append(issued(torch, call))
                card[n].append(graphs[n]())
        found = {n: {"call_us": 1e6 * median(wall[n]), "card_us": 1e6 * median(card[n])} for n in entrants}
        fresh = CudaKernel(program, kernel.printed, kernel.code)
        clock = time.perf_counter()
        fresh(*drawn)
        torch.cuda.synchronize()
        found["ours"]["first_call_us"] = 1e6 * (time.perf_counter() - clock)
        moved = [torch.empty_like(out) for _ in range(64)]
        torch.cuda.synchronize()
        clock = time.perf_counter()
        for other in moved:
            kernel(*inputs, other)
        found["ours"]["new_address_us"] = 1e6 * (time.perf_counter() - clock) / len(moved)
        rows.append({"program": name, "launches": len(kernel.printed.plan.launches), **found})
        print(json.dumps(rows[-1]), flush=True)
    return rows


TORCH = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}


def rate_rows(target: Any, trials: int) -> list[dict[str, Any]]:
    """Candidates a second of whole runs, from the call to the final round's end."""
    rows = []
    for name, program in without_products().items():
        clock = time.perf_counter()
        study = autosched.tune(program, target=target, device="cuda", trials=trials, seed=0)
        took_s = time.perf_counter() - clock
        phases = {k: round(v, 2) for k, v in study.watch.seconds().items()}
        done = len(study.searched)
        failed = dict(study.failed)
        row = {"program": name, "trials": done, "seconds": took_s, "rate": done / took_s, "phases": phases}
        rows.append(row | {"failed": failed, "best_us": 1e6 * study.best.time_s})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-t", "--target", help="the GPU's target; by default the one that fits it")
    parser.add_argument("--trials", type=int, default=64, help="of each program that is tuned for its rate")
    parser.add_argument("--few", type=int, default=16, help="trials of each program whose calls are timed")
    parser.add_argument("-o", "--output", type=Path, help="rows as JSON")
    given = parser.parse_args(arguments)
    target = given.target or matching_target(shared_card(0).facts())
    rows = {"calls": call_rows(target, given.few), "rates": rate_rows(target, given.trials)}
    if given.output:
        given.output.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
