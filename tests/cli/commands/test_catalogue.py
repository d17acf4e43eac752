"""`intrinsics`, `targets` and `doctor`, and the help that every command has."""

from __future__ import annotations

import pytest
from cli.conftest import Cli
from support.paths import TESTS


def test_intrinsics_list_and_show(cli: Cli) -> None:
    cli = cli.near()
    found = {i["name"]: i for i in cli("intrinsics", "list", "--json").json}
    assert {"x86/vpdpbusd.zmm", "x86/vfmadd.f32.zmm", "cuda/dp4a.s8.s8"} <= set(found)
    shown = cli("intrinsics", "show", "x86/vpdpbusd.zmm").out
    assert "def vpdpbusd(a: u8[16, 4], b: s8[16, 4], c: s32[16])" in shown


@pytest.mark.slow
def test_intrinsics_list_by_family_and_filter(cli: Cli) -> None:
    cli = cli.near()
    lines = cli("intrinsics", "list", "--isa", "cuda").out.splitlines()
    (row,) = [line for line in lines if line.startswith("cuda/wgmma.m64n*k16.*.f32 ")]
    assert " 64 " in row
    assert "f16|bf16" in row
    assert "64x8x16…64x256x16" in row
    assert len(lines) < 80
    assert len(cli("intrinsics", "list", "--isa", "cuda", "--all").out.splitlines()) > 400
    assert len(cli("intrinsics", "list", "wgmma.m64n*k16.f16.f16").out.splitlines()) == 33
    assert cli("intrinsics", "list", "--takes", "u8,s4").out.strip() == "none"
    takes = cli("intrinsics", "list", "--takes", "e4m3fnuz", "--json").json
    assert {i["isa"] for i in takes} == {"hip"}
    assert all("e4m3fnuz" in {o["dtype"] for o in i["operands"].values()} for i in takes)
    here = cli("intrinsics", "list", "--here").out
    assert "portable/" in here
    assert "cuda/" not in here


def test_sentences_that_begin_with_a_number_are_set_to_the_left(cli: Cli) -> None:
    """A column of summaries ("16 lanes of …") is text, whatever its first character is."""
    head, *lines = cli("intrinsics", "list", "x86/vfmadd.f*").out.splitlines()
    start = head.index("summary")
    assert lines
    assert all(line[start].isdigit() and line[start - 1] == " " for line in lines)


def test_intrinsics_list_of_what_is_not_there(cli: Cli) -> None:
    cli = cli.near()
    assert "did you mean 'cuda'" in cli("intrinsics", "list", "--isa", "cud", status=2).err
    assert "did you mean 's8'" in cli("intrinsics", "list", "--takes", "s9", status=2).err
    assert "unknown intrinsic 'nothing*'" in cli("intrinsics", "list", "nothing*", status=2).err


def test_intrinsics_show_says_what_must_be_known(cli: Cli) -> None:
    shown = cli.near()("intrinsics", "show", "cuda/wgmma.m64n24k32.e4m3.e5m2.f32").out
    for words in ("starts from zero: scale-d = 0", "asynchronous", "rule: a and b: contiguous along k", "latency 22"):
        assert words in shown, words
    assert "fraction bits 13" in shown


def test_intrinsics_show_says_where_elements_lie_and_what_is_asked_of_them(cli: Cli) -> None:
    """It showed the parts that matching sees, in the order of a register that the instruction does not have."""
    cli = cli.near()
    shown = cli("intrinsics", "show", "cuda/mma.sp.m16n8k32.f16.f16.f32").out
    for words in (
        "Matched on b_0, b_1, b_2, b_3: parts of b",
        "e: u8[16, 16]   cuda: 1 x b32   each element in 2 lanes   2 bits of a register for each   "
        "of each 2 neighbours no two may be equal",
        "in lane t, element v: (t < 32, v < 4) -> [t // 4 + 8 * (v // 2), t % 4 * 2 + v % 2]",
        "the result",
    ):
        assert words.split(" ->")[0] in shown, words
    assert "b: f16[8, 4, 8]" in shown
    told = cli("intrinsics", "show", "cuda/mma.sp.m16n8k32.f16.f16.f32", "--json").json
    assert told["operands"]["e"]["distinct"] == 2
    assert told["parts"] == {"b": ["b_0", "b_1", "b_2", "b_3"]}
    wide = cli("intrinsics", "show", "cuda/mma.m16n8k32.e2m1.e2m1.f32.mxf8f6f4").out
    assert "8 bits of a register for each, from bit 2 on" in wide
    held = cli("intrinsics", "show", "gemmini/matmul.compute").out
    assert "in the state weights" in held
    assert "config_ex: dataflow weight_stationary" in held
    assert "one group may fill all of i" in cli("intrinsics", "show", "x86/vpdpbusd.zmm").out
    assert "on sm_90: unordered" in cli("intrinsics", "show", "cuda/mma.m16n8k32.e4m3.e4m3.f32").out


def test_intrinsics_check_proves_and_runs(cli: Cli) -> None:
    (report,) = cli.near()("intrinsics", "check", "x86/vpdpbusd.zmm", "--json").json
    assert report["ok"]
    assert "1 checked, 0 wrong" in cli.near()("intrinsics", "check", "cuda/wmma.m16n16k16.f16.f32").out
    wrong = cli.near()("intrinsics", "check", TESTS / "specs_wrong" / "wrapping_for_saturating.yaml", status=1).out
    assert wrong.splitlines()[-1] == "1 checked, 1 wrong, 0 ran on this machine and agreed"


def test_intrinsics_check_finds_a_wrong_description(cli: Cli) -> None:
    """The semantics multiply; the instruction adds. Only running it tells."""
    cli = cli.near()
    (cli.folder / "wrong.yaml").write_text(
        "isa: portable\nintrinsics:\n  - name: times\n    semantics: |\n"
        "      def times(a: s32[1], c: s32[1]):\n          for i in range(1):\n              c[i] = c[i] * a[i]\n"
        "    operands:\n      a: {register: {llvm: i32, c: int32_t}}\n      c: {register: {llvm: i32, c: int32_t}}\n"
        "    emit: {llvm: 'add i32 {c}, {a}'}\n"
    )
    (report,) = cli("intrinsics", "check", "wrong.yaml", "--json", status=1).json
    assert not report["ok"]
    assert "differs" in report["said"] or "differ" in report["said"], report["said"]


def test_one_s_own_instruction_that_the_target_lacks_is_said(cli: Cli) -> None:
    cli = cli.near()
    text = (
        "isa: x86\nrequires: [{feature}]\nintrinsics:\n  - name: times\n    semantics: |\n"
        "      def times(a: s32[8], c: s32[8]):\n          for i in range(8):\n              c[i] = c[i] * a[i]\n"
    )
    (cli.folder / "own.yaml").write_text(text.format(feature="avx512_vnni"))
    words = ("match", "matmul", "-Dm=8", "-Dn=8", "-Dk=8", "-t", "x86-avx2")
    said = cli(*words, "-i", "x86/vfmadd.f32.ymm", "--intrinsics", "own.yaml", status=0).err
    assert "x86/times is not used: it needs avx512_vnni, which x86-avx2 lacks" in said
    (cli.folder / "own.yaml").write_text(text.format(feature="avx512vnni"))
    said = cli(*words, "--intrinsics", "own.yaml", status=2).err
    assert "own.yaml:2:12" in said
    assert "did you mean 'avx512_vnni'" in said


def test_targets_list_and_show_read_back(cli: Cli) -> None:
    cli = cli.near()
    names = {t["name"] for t in cli("targets", "list", "--json").json}
    assert {"nvidia-h200", "x86-avx512"} <= names
    (cli.folder / "copy.yaml").write_text(cli("targets", "show", "x86-avx2").out)
    assert cli("targets", "show", "copy.yaml", "--json").json == cli("targets", "show", "x86-avx2", "--json").json


def test_targets_detect_describes_this_machine(cli: Cli) -> None:
    found = cli.near()("targets", "detect", "--effort", "quick", "--json").json
    assert found["name"] == "native"
    assert found["memories"]
    cli = cli.near()
    (cli.folder / "here.yaml").write_text(cli("targets", "detect", "--effort", "quick", "--yaml").out)
    assert cli("targets", "show", "here.yaml", "--json").json["features"] == found["features"]


@pytest.mark.slow
def test_doctor_finds_what_tuning_needs(cli: Cli) -> None:
    found = {f["name"]: f for f in cli("doctor", "--json").json}
    assert all(f["ok"] for f in found.values() if f["needed"])
    assert {"llvm jit", "timing worker", "store"} <= set(found)
    assert not list(cli.folder.iterdir())
    (cli.folder / "file").write_text("x")
    missing = cli.near()("doctor", "--store", "file/x.db", status=3).out
    assert "MISSING store" in missing


@pytest.mark.parametrize("command", [(), ("tune",), ("intrinsics",)])
def test_help_names_the_command_and_ends_well(cli: Cli, command: tuple[str, ...]) -> None:
    assert "Usage: autosched" in cli.near()(*command, "--help").out
