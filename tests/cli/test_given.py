"""Instructions that were given and that the best plan does without: the answer says why, and what explains it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.conftest import Cli

OWN = Path(__file__).parents[2] / "examples" / "intrinsics" / "pmaddwd.yaml"
SIZES = ("-D", "m=16", "-D", "n=16", "-D", "k=16")
ON = ("-t", "x86-avx512", "-d", "simulator", "-n", "2")


def notes(cli: Cli, *arguments: object) -> list[str]:
    lines = cli("tune", "matmul", *SIZES, *ON, *arguments).out.splitlines()
    at = [n for n, line in enumerate(lines) if line.startswith("note ")]
    return lines[at[0] : at[0] + 2] if at else []


def test_one_that_fits_nothing(cli: Cli) -> None:
    said, more = notes(cli.near(), "--intrinsics", OWN, "-i", "x86/pmaddwd.ymm")
    assert said.startswith("note   no given instruction (x86/pmaddwd.ymm) computes a part of the program: stage C: ")
    assert "operand a is s16, A is f32" in said
    sizes = " ".join(SIZES)
    flags = f"-t x86-avx512 --intrinsics {OWN} -i x86/pmaddwd.ymm"
    assert more.strip() == f"`autosched match matmul {sizes} {flags} --explain` says more"
    command = more.split("`")[1].split()[1:]
    assert "operand a is s16" in cli.near()(*command, status=1).out


@pytest.mark.slow
def test_one_that_fits_and_is_not_chosen(cli: Cli) -> None:
    cli = cli.near()
    said, more = notes(cli, "-D", "a=s16", "-D", "b=s16", "--intrinsics", OWN)
    assert said.startswith("note   x86/pmaddwd.ymm fits, and no plan has it: its kernels would tie with those of x86/")
    assert " -i x86/pmaddwd.ymm --explain`" in more


@pytest.mark.slow
def test_one_that_is_chosen_needs_no_word(cli: Cli) -> None:
    assert not notes(cli.near(), "-D", "a=s16", "-D", "b=s16", "--intrinsics", OWN, "-i", "x86/pmaddwd.ymm")
    assert not notes(cli.near())
