"""Tests give fakes, clocks and limits as arguments; where one reaches into the package all the same, it is listed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from support.paths import TESTS

A_MISTAKE = "puts a mistake into what prints or proves, which must be found"
A_HANG = "has a phase of a whole run hang, whichever it is"
KNOWN: dict[str, tuple[int, str]] = {
    "cli/commands/test_emulate.py": (1, A_MISTAKE),
    "cli/test_bad_store.py": (1, "has a command take a wrong text for right, so that each build of it fails"),
    "cpu/codegen/lower/test_conditional_kernels.py": (1, A_MISTAKE),
    "cpu/codegen/llvm/test_bf16_at_once.py": (1, "has one text printed in both ways, to compare their bits"),
    "cpu/device/test_device_large.py": (5, "gives the loops as written too little time, a crash or a mistake"),
    "cpu/device/test_device_special.py": (1, A_MISTAKE),
    "cpu/device/test_tampered_plans.py": (3, A_MISTAKE),
    "cuda/device/test_comparing.py": (2, "watches the tests' own card"),
    "cuda/device/test_benchmark_finals.py": (1, "does without the libraries that a benchmark compares with"),
    "cuda/emulation/test_rows_across_warps.py": (1, A_MISTAKE),
    "pure/costmodel/clock/test_clock_team_columns.py": (1, "counts calls in the midst of the clock"),
    "pure/costmodel/test_one_thread.py": (1, "watches a class of scikit-learn"),
    "pure/device/test_stage_deadlines.py": (2, "answers in a worker's place, by a clock of its own"),
    "pure/device/simulator/test_simulator_copies.py": (1, "asks what a constant of the model does"),
    "pure/device/simulator/test_simulator_model.py": (1, "makes a kernel of a few loops one of too many places"),
    "pure/project/test_new_dtype.py": (1, "adds a row to the table of dtypes"),
    "pure/search/test_answer_cache.py": (1, "counts what a whole run works out"),
    "pure/search/test_deadline.py": (5, A_HANG),
    "pure/tensorize/matcher/test_match_windows.py": (2, "asks the solver about each answer on the way"),
    "pure/tiling/steps/gpu/test_gpu_proofs.py": (1, A_MISTAKE),
    "support/process_state.py": (2, "changes values of the whole process"),
}
"""How many places of a file replace an attribute or an item of what they do not own, and why."""
REPLACES = ("setattr", "setitem", "delattr", "delitem", "object")


def test_no_test_reaches_into_the_package_but_these() -> None:
    found = {p.relative_to(TESTS).as_posix(): _patches(p) for p in sorted(TESTS.rglob("*.py"))}
    assert {name: lines for name, lines in found.items() if len(lines) > KNOWN.get(name, (0, ""))[0]} == {}
    assert {name: count for name, (count, _) in KNOWN.items() if len(found.get(name, [])) < count} == {}, "list fewer"


def test_what_counts(tmp_path: Path) -> None:
    (tmp_path / "test.py").write_text(
        "import os, sys\nfrom autosched.ir import dtypes\n"
        "monkeypatch.setattr(os, 'getuid', 1)\nmonkeypatch.setattr('os.system', 1)\nmonkeypatch.setenv('CC', 'cc')\n"
        "monkeypatch.setattr(dtypes, 'DTYPES', {})\nmonkeypatch.setattr('autosched.api._loaded', [])\n"
        "monkeypatch.setitem(sys.modules, 'torch', None)\nsetattr(thing.inner, name, 1)\npatch.object(dtypes, 'x')\n"
    )
    assert _patches(tmp_path / "test.py") == [6, 7, 9, 10]


def _patches(path: Path) -> list[int]:
    """The lines that replace something of this package, or of what is not known to be of another."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    others = set(sys.stdlib_module_names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            others |= {a.asname or a.name.split(".")[0] for a in node.names if a.name.split(".")[0] != "autosched"}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args]
    return [n.lineno for n in calls if _replaces(n) and _ours(n, others)]


def _replaces(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in REPLACES and isinstance(call.func.value, ast.Name) and "patch" in call.func.value.id
    return isinstance(call.func, ast.Name) and call.func.id in ("setattr", "patch")


def _ours(call: ast.Call, others: set[str]) -> bool:
    target = call.args[0]
    if isinstance(target, ast.Constant):
        return str(target.value).startswith("autosched")
    while isinstance(target, ast.Attribute):
        target = target.value
    return not isinstance(target, ast.Name) or target.id not in {*others, "self"}
