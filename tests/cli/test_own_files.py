"""Files of one's own instructions and machines: folders that are checked, and mistakes in plain words."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.conftest import Cli

from autosched.errors import SpecError, UnknownNameError
from autosched.machine.spec import target_from_yaml
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text

ROOT = Path(__file__).parents[2]
OWN = (ROOT / "examples" / "intrinsics" / "pmaddwd.yaml").read_text(encoding="utf-8")
TARGET = (ROOT / "targets" / "x86-avx2.yaml").read_text(encoding="utf-8")


def test_a_folder_is_checked(cli: Cli) -> None:
    (cli.folder / "own" / "deep").mkdir(parents=True)
    (cli.folder / "own" / "deep" / "one.yaml").write_text(OWN)
    said = cli.near()("intrinsics", "check", "own").out
    assert said.startswith("x86/pmaddwd.ymm: ok")
    assert "1 checked, 0 wrong" in said
    assert cli.near()("intrinsics", "check", "own/", "--json").json[0]["intrinsic"] == "x86/pmaddwd.ymm"
    (cli.folder / "empty").mkdir()
    assert "no YAML file in the folder" in cli.near()("intrinsics", "check", "empty", status=2).err
    missing = cli.near()("intrinsics", "check", "./none", status=2).err
    assert missing.startswith("error: there is no file or folder ./none\nhelp: give a YAML file, a folder")


@pytest.mark.parametrize("isa", ["x68", "x86_64", "amd64", "cudaa", "aarch64", "amr"])
def test_an_isa_that_is_misspelt(isa: str) -> None:
    with pytest.raises(SpecError, match=f"no isa is called '{isa}'") as told:
        load_text(OWN.replace("isa: x86", f"isa: {isa}"))
    assert "known: arm, cuda, hip, maca, portable, x86" in (told.value.hint or "")
    with pytest.raises(SpecError, match=f"no isa is called '{isa}'"):
        target_from_yaml(TARGET.replace("isa: x86", f"isa: {isa}"), "own.yaml")


@pytest.mark.parametrize("isa", ["npu", "riscv", "x86"])
def test_an_isa_of_one_s_own(isa: str) -> None:
    (made,) = load_text(OWN.replace("isa: x86", f"isa: {isa}"))
    assert made.isa == isa


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ("latency: 6", "latency: six", "latency: must be a number, not 'six'"),
        ("latency: 6", "latency: -1", "latency: must be above 0, not -1"),
        ("latency: 6", "latency: 9000000", "latency: must be at most 1,000,000, not 9000000"),
        ("requires: [avx2]", "requires: 3", "requires: must be a list, not 3"),
        ("requires: [avx2]", "requires: [3]", "requires: must be a text, not 3"),
        ("header: immintrin.h", "header: {a: 1}", "header: must be a text, not keys with values"),
        ("packed: [i, k]", "packed: [i, [k]]", "packed: must be a text, not a list"),
        ("{latency: 6, interval: 0.5}", "5", "timing: must be keys with values, not 5"),
        ("{latency: 6, interval: 0.5}", "", "timing: must be keys with values, not nothing"),
        ("timing:", "kind: compte\n    timing:", "kind: must be 'compute', 'copy', 'fill', "),
        ("timing:", "lanes: 1.5\n    timing:", "lanes: must be an integer, not 1.5"),
        ("name: pmaddwd.ymm", "name: a/b", "name: 'a/b' is not of the form [A-Za-z0-9_]+"),
    ],
)
def test_mistakes_are_told_in_plain_words(written: str, instead: str, said: str) -> None:
    assert written in OWN
    with pytest.raises(SpecError) as told:
        load_text(OWN.replace(written, instead, 1))
    assert told.value.message.startswith(said)
    assert "Input should" not in told.value.message


@pytest.mark.parametrize(
    ("name", "first"),
    [("vpdpbusd.zm", "x86/vpdpbusd.zmm"), ("sdott", "arm/sdot"), ("x86/vfmadd.f32.zm", "x86/vfmadd.f32.zmm")],
)
def test_an_unknown_instruction_names_a_few_the_nearest_first(name: str, first: str) -> None:
    with pytest.raises(UnknownNameError) as told:
        Catalogue.builtin().find(name)
    hint = told.value.hint or ""
    assert hint.startswith(f"did you mean {first!r}? known: {first}, ")
    assert len(hint) < 300
    assert hint.count(", ") == 7
