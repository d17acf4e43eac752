"""Each chain of the GPU benchmark is a program, has a library to run beside it, and a line in the table."""

from __future__ import annotations

import json

from support.paths import TESTS

from autosched.ir import workload
from benchmarks.gpu.chain_operations import NAMED, written
from benchmarks.gpu.chains import chain_cases
from benchmarks.gpu.table import table

KEPT = TESTS.parent / "benchmarks" / "results" / "cuda_chains.json"


def test_each_case_is_a_program_and_has_a_library() -> None:
    cases = list(chain_cases())
    assert len({c.name for c in cases}) == len(cases)
    asked = {*NAMED, *written()}
    for case in cases:
        assert workload(case.workload, **case.sizes).stages
        assert case.peer in asked


def test_the_table_has_all_kept_cases() -> None:
    found = json.loads(KEPT.read_text())["cases"]
    assert {c["name"] for c in found} == {c.name for c in chain_cases()}
    lines = [line for line in table(found).splitlines() if line.startswith("| ")]
    assert len(lines) == len(found) + 1
