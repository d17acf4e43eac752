"""Each library that is installed computes what the program says: a peer that computed less would be a bad anchor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autosched
from autosched.ir import random_inputs, run
from autosched.machine.detect import usable_cpus
from benchmarks.common.stream import BLOCK, COLUMNS, KINDS, VECTOR, Stream
from benchmarks.peers import Task, UnavailableError, numpy_peer, onednn, onnx_runtime, torch_peer

MATMUL = {"m": 33, "n": 50, "k": 40}
CONV = {"h": 9, "w": 8, "ci": 16, "co": 24}
FAMILIES = {"numpy": numpy_peer, "torch": torch_peer, "onednn": onednn, "onnxruntime": onnx_runtime}
LAYOUTS = ("nhwc", "nchw")
PROGRAMS: list[tuple[str, dict[str, Any]]] = [
    *(("matmul", {**MATMUL, **t}) for t in ({"t": "f32"}, {"t": "bf16"}, {"t": "s8"}, {"a": "u8", "b": "s8"})),
    ("matmul", {**MATMUL, "tb": 1}),
    ("batch_matmul", {**MATMUL, "batch": 3}),
    *(("matmul_bias_gelu", {**MATMUL, "gelu": g}) for g in ("erf", "tanh")),
    ("matmul_bias_relu", MATMUL),
    ("matmul_requant", MATMUL),
    *(("conv2d", {**CONV, "layout": o, "stride": 2, "dilation": 2, "groups": 2}) for o in LAYOUTS),
    *(("conv2d", {**CONV, "layout": o, "a": "u8", "b": "s8"}) for o in LAYOUTS),
    *(("depthwise_conv2d", {"h": 9, "w": 8, "c": 24, "stride": 2, "layout": o}) for o in LAYOUTS),
    *(("conv2d_bias_relu", {**CONV, "layout": o, "residual": 1}) for o in LAYOUTS),
    ("softmax", {"m": 9, "n": 20}),
    ("layer_norm", {"m": 9, "n": 20}),
]  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
def test_peers_compute_what_the_program_says(family: str, packed: bool) -> None:
    count = 0
    for name, sizes in PROGRAMS:
        program = autosched.workload(name, **sizes)
        arrays = random_inputs(program, np.random.default_rng(1))
        for weight in (n for n, t in program.tensors.items() if t.const and t.dtype.name == "s8"):
            arrays[weight] //= 2  # without VNNI libraries add pairs of products in 16 bits, and saturate
        if name == "matmul_requant":
            arrays["D"] *= 1e-3  # most results in range, so that they say something
        try:
            contenders = list(FAMILIES[family].contenders(Task(program, arrays, usable_cpus()[-1:], packed)))
        except UnavailableError as missing:
            if "install" in str(missing) or "libdnnl" in str(missing):
                pytest.skip(str(missing))
            continue
        ours = run(program, arrays)[program.outputs[0]] if contenders else None
        for contender in contenders:
            contender.run()
            assert not contender.difference(ours), f"{contender.name}: {program.name} {sizes}"
            broken = np.array(ours)
            low, high = broken.min(), broken.max()
            broken.flat[0] = high if broken.flat[0] < low / 2 + high / 2 else low
            assert contender.difference(broken), f"{contender.name} does not notice a wrong element"
            count += 1
    assert count


@pytest.mark.parametrize("threads", [1, 2])
def test_the_bandwidth_loop_moves_the_bytes_it_should(threads: int) -> None:
    stream = Stream(5000, 3000, threads)
    assert len(stream.memory) > 1
    for source, target in stream.memory:
        source[:] = np.arange(source.size) % 251
        target[:] = 0
    source, target = stream.memory[0]
    for kind in KINDS:
        target[:] = 255
        took_s = stream.sample(kind)
        assert 0 < stream.best_s <= took_s
        # Each thread copies its share, from its own part of the source, or from columns of that.
        for t, s in zip(np.array_split(target, threads), np.array_split(source, threads), strict=True):
            columns = s.reshape(COLUMNS if kind == "columns" else 1, -1, VECTOR)
            blocks = columns.reshape(len(columns), -1, BLOCK // len(columns) // VECTOR, VECTOR).transpose(1, 2, 0, 3)
            assert (t == blocks.reshape(-1)[: t.size]).all()
    assert not any(target.any() for _, target in stream.memory[1:])  # the first sample of each kind is of one place
