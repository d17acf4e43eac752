"""Lowering reads decisions by the handles that their steps declare, never by a name and a default of its own."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from support.paths import ROOT

from autosched.ir import resolve
from autosched.machine.catalogue import load_target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tiling import steps
from autosched.tiling.step import Handle

PROGRAMS = {
    "cpu": ("x86-avx512", ["matmul", "conv2d", "conv1d"]),
    "gpu": ("nvidia-h200", ["matmul_nt", "matmul"]),
    "spatial": ("gemmini", ["matmul"]),
}
TYPES = {"gpu": {"a": "f16", "b": "f16", "acc": "f32"}, "spatial": {"a": "s8", "b": "s8", "acc": "s32"}}


def handles_of(kind: str) -> Iterator[Handle]:
    """Those that the steps of a kind of target declare."""
    folder = importlib.import_module(f"{steps.__name__}.{kind}")
    for found in pkgutil.walk_packages(folder.__path__, folder.__name__ + "."):
        module = importlib.import_module(found.name)
        yield from (value for value in vars(module).values() if isinstance(value, Handle))


def test_lowering_reads_no_decision_by_a_name_of_its_own() -> None:
    """Neither `names("unroll")` nor `values.get(name, default)`."""
    found = []
    for path in sorted((ROOT / "autosched" / "codegen" / "lower").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(ast.Name("names") | ast.Attribute(attr="names"), [ast.Constant(str())]):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
                case ast.Call(ast.Attribute(ast.Name("values") | ast.Attribute(attr="values"), "get"), _):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not found


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_neutral_value_is_the_first_of_the_decision(kind: str) -> None:
    """Rows whose space lacks a decision are lowered as rows that have it are where it changes nothing."""
    target, programs = PROGRAMS[kind]
    firsts: dict[str, set[int]] = {}
    for name in programs:
        request = TuneRequest(resolve(name, TYPES.get(kind, {})), load_target(target), device="simulator", threads=2)
        for plan in plans_of(request)[1]:
            if plan.tensor_parts:
                for decision in plan.space.decisions:
                    firsts.setdefault(decision.name.split(".")[-1], set()).add(decision.domain[0])
    known = {h.name: h.neutral for h in handles_of(kind) if h.name in firsts}
    assert len(known) >= {"cpu": 7, "gpu": 12, "spatial": 1}[kind], known
    for name, neutral in known.items():
        assert neutral is None or firsts[name] == {neutral}, name
