"""`tune --emulate`: on the simulator, kernels of a CUDA target are checked as printed."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Cli

from autosched.codegen.cuda.emulation import run as emulated
from autosched.codegen.cuda.emulation.build import compiler
from autosched.ir.workload import workload
from autosched.machine.catalogue import load_target
from autosched.search.events import Event, NotRunWhole
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import prepare

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler"),
]
SIZES = ("-D", "m=32", "-D", "n=16", "-D", "k=32", "-D", "t=f16", "-i", "cuda/mma.m16n8k8.*")
TUNE = ("tune", "matmul", *SIZES, "-t", "nvidia-h200", "-d", "simulator", "-n", 3, "--emulate", "--store", ":memory:")


@pytest.mark.slow
def test_the_winner_is_checked_as_printed(cli: Cli) -> None:
    found = cli.near()(*TUNE, "--json").json
    assert found["verified"]["ok"]
    assert found["verified"]["by"] == "the emulator"
    assert found["trials"] == {"done": 3, "failed": {}}


@pytest.mark.parametrize(("m", "told"), [(32, False), (8192, True)])
def test_that_kernels_are_too_large_is_said_before_the_search(m: int, told: bool) -> None:
    program = workload("matmul", m=m, n=m, k=32, t="f16")
    heard: list[Event] = []
    only = ("cuda/mma.m16n8k8.f16.f16.f32",)
    request = TuneRequest(program, load_target("nvidia-h200"), device="simulator", only=only, emulate=True)
    tuning = prepare(request, heard.append)
    tuning.device.close()
    assert any(isinstance(event, NotRunWhole) for event in heard) == told


@pytest.mark.slow
def test_what_was_checked_otherwise_is_another_study(cli: Cli) -> None:
    kept = ("--store", "studies.db", "--json")
    plain = cli.near()(*(a for a in TUNE[:-2] if a != "--emulate"), *kept).json
    checked = cli.near()(*TUNE[:-2], *kept).json
    assert (plain["verified"]["by"], checked["verified"]["by"]) == ("the interpreter", "the emulator")
    assert plain["study"] != checked["study"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (r"= 0.0f;", "= 1.0f;", "512 wrong elements"),
        (r"(__global__[^{]*\{\n)", r"\1    if (threadIdx.x == 0) __shfl_sync(~0u, 1, 0);\n", "(kernel matmul, block ("),
    ],
)
def test_what_is_printed_wrong_is_a_wrong_trial(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, right: str, wrong: str, said: str
) -> None:
    printed = emulated.print_cuda

    def careless(*arguments: Any) -> Any:
        source = printed(*arguments)
        return replace(source, text=re.sub(right, wrong, source.text))

    monkeypatch.setattr(emulated, "print_cuda", careless)
    done = cli.near()(*TUNE, status=4)
    assert "3 failed with 'wrong'" in done.err
    assert said in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-t", "x86-avx512", "-d", "simulator"), "--emulate is for CUDA targets; x86-avx512 is x86"),
        (("-d", "cpu"), "the device cpu takes no option 'emulate'"),
    ],
)
def test_where_nothing_can_be_emulated(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    done = cli.near()("tune", "matmul", "-D", "m=16", *arguments, "-n", 1, "--emulate", "--store", ":memory:", status=2)
    assert said in done.err


def test_what_to_do_with_it_is_said(cli: Cli, tmp_path: Path) -> None:
    store = str(tmp_path / "trials.db")
    tuned = cli.near()("tune", "matmul", *SIZES, "-t", "nvidia-h200", "-d", "simulator", "-n", 1, "--store", store)
    assert tuned.out.rstrip().endswith(f"-o matmul.cu --store {store}"), tuned.out


def test_no_compiler(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("PATH", "")
    done = cli.near()(*TUNE, status=3)
    assert "no C++ compiler" in done.err
    monkeypatch.setenv("CXX", "my-c++ -v")
    assert compiler() == ["my-c++", "-v"]
