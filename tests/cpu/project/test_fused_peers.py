"""The benchmark of fused chains runs, and its sides compute the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import autosched
from autosched.ir import random_inputs, run
from autosched.machine.detect import detect, usable_cpus
from benchmarks.common.tuning import Request
from benchmarks.fused import torch_peers
from benchmarks.fused.cases import Case, attention, feed_forward, quantized, separable
from benchmarks.fused.command import SCHEMA, main
from benchmarks.fused.contest import BOUND, OWN, prepared
from benchmarks.fused.conversions import LANES, UNROLL, Conversions, known
from benchmarks.fused.rows import Row
from benchmarks.peers import Task

TINY = (
    attention("full", 2, 16, 8), attention("causal", 2, 16, 8), attention("causal", 2, 16, 8, "bf16"),
    feed_forward("swiglu", 5, 16, 24), feed_forward("mlp", 5, 16, 24), feed_forward("mlp", 5, 16, 24, "bf16"),
    quantized(4, 3, 64, 64, 32), quantized(8, 3, 64, 64, 32), quantized(8, 3, 64, 64, 64),
    separable("depthwise", 6, 8, 8, 16), separable("conv2d", 6, 8, 16, 8),
)  # fmt: skip


@pytest.mark.parametrize("sequence", [*known(4), *known(8)])
def test_the_loop_of_conversions_adds_every_weight(sequence: str) -> None:
    loop = Conversions(sequence)
    low, high = 3.0, 1.0  # nibbles of the bytes 0x13
    loop.fill(0x13)
    each = [19.0] if sequence in known(8) else [low, high]
    passes = 2
    blocks = loop.bytes // (LANES * UNROLL)
    expected = np.repeat(np.tile(each, UNROLL), LANES) * 0.5 * passes * blocks
    assert np.array_equal(loop.sums(passes), expected)
    assert loop.sample() > 0


@pytest.mark.slow
@pytest.mark.parametrize("case", TINY, ids=lambda c: c.name)
def test_peers_compute_what_the_chain_says(case: Case) -> None:
    pytest.importorskip("torch")
    program = Request(case.workload, case.sizes, "nowhere").program()
    arrays = random_inputs(program, np.random.default_rng(1))
    prepared(program, arrays)
    ours = run(program, arrays)[program.outputs[0]]
    found, missing = torch_peers.contenders(Task(program, arrays, usable_cpus()[-1:], True))
    assert found or "one scale a column" in str(missing)
    for peer in found:
        peer.run()
        if "8-bit activations" in peer.name and not any("vnni" in f for f in detect().features):
            continue  # without VNNI, PyTorch clamps sums of pairs of products: exact for weights up to 63, not to 127
        assert not peer.difference(ours), peer.name
        assert peer.difference(ours[..., ::-1]), f"{peer.name} does not notice other numbers"


@pytest.mark.slow
@pytest.mark.skipif(
    Path(autosched.__file__).parents[1] != Path(__file__).parents[3],
    reason="a benchmark starts processes in the checkout: needs an editable install",
)
@pytest.mark.parametrize(
    "case", [separable("depthwise", 6, 8, 8, 16), quantized(4, 1, 32, 64, 32)], ids=lambda c: c.name
)
def test_the_command_measures_a_case(case: Case, tmp_path: Path) -> None:
    results = tmp_path / "fused.json"
    assert main(["--trials", "2", "--rounds", "3", "--json", str(results)], [case]) == 0
    data = json.loads(results.read_text())
    assert data["schema"] == SCHEMA
    (row,) = (Row.from_json(r) for r in data["rows"])
    assert row.error == ""
    assert row.outcome
    assert row.outcome.rounds == 3
    assert not row.outcome.wrong
    assert {a.name for a in row.of(OWN)} == {a.name for a in case.apart}
    assert ("roofline" in [a.name for a in row.of(BOUND)]) == bool(case.weights)
