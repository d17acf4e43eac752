"""Runs in TVM's own environment: tune one case with MetaSchedule, then serve timings of the best kernel.

    python metaschedule_worker.py '{"case": "f32_512", "trials": 64, "seed": 0, "folder": "work"}'

Standard library, numpy and `apache-tvm` only. Every line on stdout is a JSON object: first what the tuning took, then a
number of seconds for each line `time` on stdin.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

CASES: dict[str, dict[str, Any]] = {
    "f32_512": {"kind": "f32", "n": 512},
    "f32_1024": {"kind": "f32", "n": 1024},
    "int8_512": {"kind": "int8", "n": 512},
    "int8_1024": {"kind": "int8", "n": 1024},
    "conv_56x56x64": {"kind": "conv", "n": 56},
    "f32_128": {"kind": "f32", "n": 128},  # small ones, to see that everything runs
    "int8_128": {"kind": "int8", "n": 128},
}
LANES, GROUP = 16, 4
SAMPLE_S = 1e-2
PLACES = 8
"""As in `benchmarks.common.kernel`: copies of the data, on which samples are taken in turn."""
BUILD_LIMIT_S, RUN_LIMIT_S = 120.0, 60.0
"""TVM's own 30 s count the start of its worker, which takes that long on a busy machine."""
VNNI = "autosched_vpdpbusd_16x4"


def f32(n: int) -> Any:
    from tvm import te

    a, b = te.placeholder((n, n), "float32", "A"), te.placeholder((n, n), "float32", "B")
    k = te.reduce_axis((0, n), "k")
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], k), "C")])


def int8(n: int) -> Any:
    """B lies as the instruction takes it, which is as favourable as it gets: [n / 16, k / 4, 16, 4]."""
    from tvm import te

    a = te.placeholder((n, n), "uint8", "A")
    b = te.placeholder((n // LANES, n // GROUP, LANES, GROUP), "int8", "B")
    k = te.reduce_axis((0, n), "k")

    def element(i: Any, j: Any) -> Any:
        weight = b[te.indexdiv(j, LANES), te.indexdiv(k, GROUP), te.indexmod(j, LANES), te.indexmod(k, GROUP)]
        return te.sum(a[i, k].astype("int32") * weight.astype("int32"), k)

    return te.create_prim_func([a, b, te.compute((n, n), element, "C")])


def conv(n: int) -> Any:
    """3x3, NHWC, 64 to 64 channels, padded by one."""
    from tvm import te, tirx

    c = 64
    x, w = te.placeholder((1, n, n, c), "float32", "X"), te.placeholder((3, 3, c, c), "float32", "W")

    def inside(y: Any, v: Any) -> Any:
        return tirx.all(y >= 1, y < n + 1, v >= 1, v < n + 1)

    zero = tirx.const(0.0, "float32")
    padded = te.compute(
        (1, n + 2, n + 2, c), lambda z, y, v, o: tirx.if_then_else(inside(y, v), x[z, y - 1, v - 1, o], zero), "P"
    )
    r, s, q = (te.reduce_axis((0, e), name) for e, name in ((3, "r"), (3, "s"), (c, "q")))
    y = te.compute(
        (1, n, n, c), lambda z, i, j, o: te.sum(padded[z, i + r, j + s, q] * w[r, s, q, o], (r, s, q)), "Y"
    )
    return te.create_prim_func([x, w, y])


PROGRAMS = {"f32": f32, "int8": int8, "conv": conv}


def data(kind: str, n: int) -> tuple[list[Any], Any]:
    """Random inputs in the kernel's layouts, and the expected output (float64, or exact integers)."""
    rng = np.random.default_rng(0)
    if kind == "int8":
        a = rng.integers(0, 256, (n, n)).astype(np.uint8)
        b = rng.integers(-128, 128, (n, n)).astype(np.int8)
        packed = b.reshape(n // GROUP, GROUP, n // LANES, LANES).transpose(2, 0, 3, 1)
        return [a, np.ascontiguousarray(packed)], a.astype(np.int64) @ b.astype(np.int64)
    if kind == "f32":
        a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
        return [a, b], a.astype(np.float64) @ b
    x = rng.standard_normal((1, n, n, 64)).astype(np.float32)
    w = rng.standard_normal((3, 3, 64, 64)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), (3, 3), (1, 2))
    return [x, w], np.einsum("zyxcrs,rsco->zyxo", windows.astype(np.float64), w, optimize=True)


def register_vnni() -> None:
    """The instruction with the operands that LLVM 22 takes (bytes, not words): the shipped one does not build."""
    from tvm.s_tir import TensorIntrin
    from tvm.s_tir.tensor_intrin.x86 import dot_product_16x4_u8i8i32_desc as description
    from tvm.script import tirx as T

    @T.prim_func(s_tir=True)
    def vpdpbusd(
        A: T.Buffer((4,), "uint8", offset_factor=1),
        B: T.Buffer((16, 4), "int8", offset_factor=1),
        C: T.Buffer((16,), "int32", offset_factor=1),
    ) -> None:
        with T.sblock("root"):
            T.reads(C[0:16], A[0:4], B[0:16, 0:4])
            T.writes(C[0:16])
            a = T.reinterpret(T.broadcast(T.reinterpret(A.vload([0], "uint8x4"), dtype="int32"), 16), dtype="int8x64")
            C[T.ramp(T.int32(0), 1, 16)] = T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id("llvm.x86.avx512.vpdpbusd.512"),
                C.vload([0], dtype="int32x16"),
                a,
                B.vload([0, 0], dtype="int8x64"),
                dtype="int32x16",
            )

    TensorIntrin.register(VNNI, description, vpdpbusd, override=True)


def space(kind: str) -> Any:
    """TVM's own rules; for int8 those of VNNI with the corrected instruction, and no vectorisation around it."""
    from tvm.s_tir import meta_schedule as ms

    if kind != "int8":
        return "post-order-apply"
    register_vnni()
    rule = ms.schedule_rule
    rules = [
        rule.ApplyCustomRule(),
        rule.AutoInline(into_producer=False, into_consumer=True, inline_const_tensor=True, disallow_if_then_else=True,
                        require_injective=True, require_ordered=True, disallow_op=["tirx.exp"]),
        rule.MultiLevelTilingWithIntrin(
            VNNI, structure="SSRSRS", tile_binds=None, max_innermost_factor=64, vector_load_lens=None,
            reuse_read=None, reuse_write=rule.ReuseType(req="may", levels=[1, 2], scope="global"),
        ),
        rule.ParallelizeVectorizeUnroll(
            max_jobs_per_core=16, max_vectorize_extent=-1, unroll_max_steps=[0, 16, 64, 512], unroll_explicit=True
        ),
        rule.RandomComputeLocation(),
    ]  # fmt: skip
    post = [ms.postproc.DisallowDynamicLoop(), ms.postproc.RewriteParallelVectorizeUnroll(),
            ms.postproc.RewriteReductionBlock(), ms.postproc.RewriteTensorize(vectorize_init_loop=True)]  # fmt: skip
    mutators = {ms.mutator.MutateTileSize(): 0.9, ms.mutator.MutateComputeLocation(): 0.05,
                ms.mutator.MutateUnroll(): 0.03}  # fmt: skip
    return ms.space_generator.PostOrderApply(sch_rules=rules, postprocs=post, mutator_probs=mutators)


def main() -> None:
    request = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # TVM prints
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import tvm
    from tvm.s_tir import meta_schedule as ms

    case = CASES[request["case"]]
    kind, n = case["kind"], case["n"]
    folder = Path(request["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    target = tvm.target.Target({"kind": "llvm", "mcpu": host_cpu(), "num-cores": 1})
    module = tvm.IRModule({"main": PROGRAMS[kind](n).with_attr("global_symbol", "main")})
    started = time.perf_counter()
    database = ms.tune_tir(
        module, target, str(folder), request["trials"], num_trials_per_iter=min(64, request["trials"]),
        num_tuning_cores=1, seed=request["seed"] + 1, space=space(kind),
        builder=ms.builder.LocalBuilder(timeout_sec=BUILD_LIMIT_S),
        runner=ms.runner.LocalRunner(timeout_sec=RUN_LIMIT_S),
    )  # fmt: skip
    wall_s = time.perf_counter() - started
    records = list(database.get_all_tuning_records())
    # A candidate that failed has no time, or one of 1e10 seconds.
    fine = [r for r in records if r.run_secs and min(float(s) for s in r.run_secs) < 1e9]
    schedule = ms.tir_integration.compile_tir(database, module, target)
    said: dict[str, Any] = {
        "tvm": tvm.__version__, "llvm": int(tvm.get_global_func("target.llvm_version_major")()), "target": str(target),
        "wall_s": wall_s, "trials": len(records), "failed": len(records) - len(fine),
    }  # fmt: skip
    if schedule is None:
        answers.write(json.dumps(said | {"error": "no candidate survived"}) + "\n")
        answers.flush()
        return
    kernel = tvm.compile(schedule.mod, target)
    inputs, want = data(kind, n)
    device = tvm.cpu()
    empty = np.zeros(want.shape, np.int32 if kind == "int8" else np.float32)
    places = [[tvm.runtime.tensor(v, device) for v in (*inputs, empty)] for _ in range(PLACES)]
    run = kernel["main"]
    for place in places:
        run(*place)
    got = places[0][-1].numpy().astype(np.float64)
    error = float(np.abs(got - want).max()) / (1.0 if kind == "int8" else float(np.abs(want).max()))
    said |= {"error": "" if error <= (0 if kind == "int8" else 1e-4) else f"wrong by {error:.3g}"}
    answers.write(json.dumps(said) + "\n")
    answers.flush()
    once = min(timed(run, places[0], 1) for _ in range(3))
    repeats = max(1, int(SAMPLE_S / once))
    for place, line in zip(cycle(places), sys.stdin, strict=False):
        if line.strip() != "time":
            break
        run(*place)
        answers.write(json.dumps(timed(run, place, repeats)) + "\n")
        answers.flush()


def timed(call: Any, arguments: list[Any], repeats: int) -> float:
    started = time.perf_counter()
    for _ in range(repeats):
        call(*arguments)
    return (time.perf_counter() - started) / repeats


def host_cpu() -> str:
    """LLVM's name of this CPU."""
    import tvm

    return str(tvm.get_global_func("target.llvm_get_system_cpu")())


if __name__ == "__main__":
    main()
