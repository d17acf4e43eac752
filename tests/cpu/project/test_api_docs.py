"""docs/python.md is true: sessions print what they show, plug-ins pass the conformance suites and have names."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conformance.costmodel import CostModelConformance
from conformance.device import DeviceConformance
from conformance.strategy import StrategyConformance
from support.paths import ROOT

import autosched
from autosched.costmodel.protocol import CostModel
from autosched.device.protocol import Device
from autosched.search import SearchSpace, Strategy
from autosched.tiling.candidate import Candidate

PAGE = ROOT / "docs" / "python.md"
BLOCKS = re.findall(r"^```([a-z]+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
GEMM, PLUG_INS = PYTHON[0], "\n\n".join(PYTHON[1:])


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The page's classes as an installed package with its entry points."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "my_package.py").write_text(PLUG_INS)
    info = folder / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(next(text for kind, text in BLOCKS if kind == "ini"))
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    yield importlib.import_module("my_package")
    sys.path.remove(str(folder))
    del sys.modules["my_package"]


def have(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


@pytest.mark.slow
@pytest.mark.usefixtures("no_own_intrinsics")
def test_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plots = have("matplotlib")
    if plots:
        importlib.import_module("matplotlib").use("Agg")
    (tmp_path / "gemm.py").write_text(GEMM)
    (tmp_path / "my_npu.yaml").write_text((ROOT / "examples" / "intrinsics" / "my_npu.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    text = "\n".join(body for kind, body in BLOCKS if kind == "pycon" and (plots or "plot" not in body))
    test = doctest.DocTestParser().get_doctest(text, {}, "python.md", str(PAGE), 0)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert result.attempted >= 30
    assert result.failed == 0, "".join(report)


def test_the_strategy_is_as_short_as_it_looks() -> None:
    (found,) = (
        n for text in PYTHON for n in ast.parse(text).body if isinstance(n, ast.ClassDef) and n.name == "Shuffled"
    )
    assert len([line for line in ast.unparse(found).splitlines() if line.strip()]) <= 15


class TestShuffled(StrategyConformance):
    @pytest.fixture(autouse=True)
    def _package(self, package: ModuleType) -> None:
        self.package = package

    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        made: Strategy = self.package.Shuffled(space, seed, None)
        return made


class TestScaled(CostModelConformance):
    @pytest.fixture(autouse=True)
    def _package(self, package: ModuleType) -> None:
        self.package = package

    def make(self, seed: int = 0) -> CostModel:
        made: CostModel = self.package.Scaled(seed, 1)
        return made


class TestEstimate(DeviceConformance):
    deterministic = True

    @pytest.fixture
    def device(self, package: ModuleType) -> Device:
        made: Device = package.Estimate()
        return made

    @pytest.fixture
    def candidates(self, study: Any) -> Sequence[Candidate]:
        space = study.space
        return list(space.candidates(space.locate(np.arange(0, space.rows, space.rows // 3)[:3])))


@pytest.fixture(scope="module")
def study(package: ModuleType) -> Any:
    gemm = autosched.workload("matmul", m=32, n=32, k=32, a="u8", b="s8", acc="s32")
    target = autosched.target("x86-avx512")
    return autosched.tune(gemm, target, device="estimate", strategy="shuffled", cost_model="scaled", trials=6)


def test_plug_ins_are_known_by_name(study: Any, package: ModuleType) -> None:
    assert study.record.device == "estimate"
    assert len({t.key for t in study.searched}) == 6
    with pytest.raises(autosched.errors.UnknownNameError, match="did you mean 'shuffled'"):
        autosched.compare(study.space.plans[0].plan.program, strategies=["shufled"])


def test_plug_ins_can_be_compared(study: Any, package: ModuleType) -> None:
    program, target = study.space.plans[0].plan.program, study.space.plans[0].plan.target
    given = ["shuffled", package.Shuffled, "auto:scaled"]
    table = autosched.compare(program, given, "estimate", 8, 2, target)
    assert table.strategies == ("shuffled", "Shuffled", "auto:scaled")
    assert table.device == "estimate"
    curves = table.curves
    assert np.array_equal(curves["shuffled"], curves["Shuffled"])
    assert (curves["auto:scaled"][:, -1] <= curves["shuffled"][:, -1]).all()
