"""The Python interface as the design writes it, almost word for word, on small sizes."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from support.paths import ROOT

import autosched
from autosched.errors import MissingError, UsageError

NPU = ROOT / "examples" / "intrinsics" / "my_npu.yaml"
GEMM = """
def gemm(A: u8[m, k], B: const[s8[k, n]], C: s32[m, n], *, m=512, n=512, k=512):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_own_intrinsics: None) -> Path:
    (tmp_path / "gemm.py").write_text(GEMM)
    (tmp_path / "my_npu.yaml").write_text(NPU.read_text())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_block_of_the_design(folder: Path) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (6, 20), np.uint8)
    b = rng.integers(-128, 128, (20, 40), np.int8)

    gemm = autosched.load("gemm.py:gemm", m=6, n=40, k=20)  # interpreted, a candidate
    autosched.intrinsics.load("my_npu.yaml")
    seen = []
    for mapping in autosched.match(gemm, "x86/vpdpbusd.zmm").mappings:
        seen.append(mapping.axes)
        assert "reduction: " in str(mapping.certificate)
    assert {"i": ("j",), "k": ("p",)} in seen
    native = autosched.target("native")  # measured once; `target="native"` would measure twice here
    study = autosched.tune(gemm, target=native, trials=8, seed=0)
    kernel = study.best.build()
    c = kernel(a, b)
    assert np.array_equal(c, a.astype(np.int32) @ b.astype(np.int32))
    assert "gemm(" in kernel.source
    assert "gemm(" in kernel.header
    device = autosched.device("cpu")
    try:
        for candidate in study.ask(4):
            study.tell(candidate, device.measure(device.build(candidate)))
    finally:
        device.close()
    assert [t.measurement.status for t in study.searched] == ["ok"] * 12
    assert len({t.key for t in study.searched}) == 12
    table = autosched.compare(
        gemm, strategies=["random", "evolutionary", "auto"], device="simulator", trials=4, seeds=2, target=native
    )
    assert len(table.rows) == 3 * 2 * 4
    assert [row for row in table.rows if row.status != "ok"] == []
    if importlib.util.find_spec("matplotlib"):
        importlib.import_module("matplotlib").use("Agg")
        assert [line.get_label() for line in table.plot().lines] == ["random", "evolutionary", "auto"]
    else:
        with pytest.raises(MissingError, match="matplotlib"):
            table.plot()
    if importlib.util.find_spec("pandas"):
        assert len(table.frame) == len(table.rows)
    else:
        with pytest.raises(MissingError, match="pandas"):
            _ = table.frame


def test_programs_from_text_workloads_and_einsums() -> None:
    from_text = autosched.parse(GEMM, m=8, n=8, k=8)
    assert from_text.sizes == {"m": 8, "n": 8, "k": 8}
    assert autosched.workload("matmul", m=8).sizes["m"] == 8
    assert len(autosched.einsum("mk,kn->mn", m=8, n=8, k=8).parameters) == 3


def test_an_intrinsic_from_text(folder: Path) -> None:
    autosched.intrinsics.load(NPU.read_text())
    program = autosched.workload("matmul", m=16, n=16, k=16, a="s8", b="s8", acc="s32")
    assert autosched.match(program, "npu/mma.s8.s32").verdict == "match"
    verdicts = {m.intrinsic.name: m.verdict for m in autosched.match(program, ["npu/*", "x86/vfmadd*"])}
    assert verdicts["npu/mma.s8.s32"] == "match"
    assert set(verdicts.values()) >= {"match", "no"}


@pytest.mark.slow
def test_comparisons_that_cannot_be() -> None:
    program = autosched.workload("matmul", m=8, n=8, k=8)
    with pytest.raises(UsageError, match="strategy"):
        autosched.compare(program, strategies=["rando"])
    with pytest.raises(UsageError, match="seeds"):
        autosched.compare(program, seeds=0)
    with pytest.raises(UsageError, match="trials"):
        autosched.compare(program, trials=0)
