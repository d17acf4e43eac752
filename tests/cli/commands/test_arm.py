"""Tuning for a machine that is not here: `-t arm-… -d simulator`, shown and exported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.conftest import Cli

SMALL = ("-D", "m=10", "-D", "n=12", "-D", "k=16", "-D", "a=s8", "-D", "b=s8", "-D", "acc=s32")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("target", "instruction", "builtin", "march"),
    [
        ("arm-neoverse-v1", "smmla", "vmmlaq_s32", "armv8.2-a+i8mm"),
        ("arm-neoverse-n1", "sdot", "vdotq_s32", "armv8.2-a+dotprod"),
    ],
)
def test_a_study_for_an_arm_core(cli: Cli, target: str, instruction: str, builtin: str, march: str) -> None:
    cli = cli.near()
    name = f"arm/{instruction}"
    found = cli("tune", "matmul", *SMALL, "-t", target, "-d", "simulator", "-n", 2, "-i", name, "--json").json
    assert (found["target"], found["device"], found["best"]["intrinsic"]) == (target, "simulator", name)
    assert found["verified"]["ok"]
    assert found["best"]["time_s"] < found["baseline"]["time_s"]
    study = found["study"]
    assert f"aarch64.neon.{instruction}." in cli("show", study, "--as", "llvm").out
    assert re.search(rf"^\t{instruction}\tv", cli("show", study, "--as", "asm").out, re.MULTILINE)
    assert f"{builtin}(" in cli("show", study, "--as", "c").out
    assert f"<- {name}(" in cli("show", study, "--as", "loops").out
    cli("export", study, "-o", "kernel.c")
    source, header = (Path(cli.folder / f"kernel.{end}").read_text() for end in "ch")
    assert "#include <arm_neon.h>" in source
    assert re.search(rf"Build: .*-march={re.escape(march)}$", header, re.MULTILINE)


def test_an_arm_target_does_not_run_here(cli: Cli) -> None:
    done = cli.near()("tune", "matmul", *SMALL, "-t", "arm-neoverse-n1", "-d", "cpu", "-n", 1, status=3)
    assert "-d simulator" in done.err


def test_what_a_core_lacks_is_not_used(cli: Cli) -> None:
    listed = cli.near()("match", "matmul", *SMALL, "-t", "arm-neoverse-n1", "-i", "arm/*", "--json").json
    names = {m["intrinsic"] for m in listed if m["verdict"] == "match"}
    assert "arm/sdot" in names
    assert not names & {"arm/smmla", "arm/usdot"}
