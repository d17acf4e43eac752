"""Chips of one's own: `match` and `tune` say the same of who computes what, and a mistake of spelling is one line."""

from __future__ import annotations

import pytest
from cli.conftest import Cli
from support.chips import FOLDER

CHIPS = FOLDER.resolve()
SOFTMAX = (f"{CHIPS / 'programs.py'}:softmax", "-D", "m=16", "-D", "n=16")
VECTOR = ("-t", str(CHIPS / "vector.yaml"))
ISA = str(CHIPS / "vector_isa.yaml")


def test_match_says_the_steps_of_a_stage_on_a_chip(cli: Cli) -> None:
    out = cli("match", *SOFTMAX, *VECTOR, "--intrinsics", ISA).out
    head, *steps = out[out.index("stage E") :].splitlines()[:3]
    assert head.endswith("programs.py:33:9): no single instruction takes it; `tune` lays it out in 2 steps")
    assert [s.split(": ")[1] for s in steps] == ["X[i, j] - M[i]", "exp(X[i, j] - M[i])"]
    assert [s.split(".")[0] for s in steps] == ["  vla/vsub", "  vla/vexp"]
    assert "scalar or vector code" not in out
    assert "portable/" not in out


@pytest.mark.slow
def test_match_of_one_instruction_says_them_too(cli: Cli) -> None:
    asked = ("match", *SOFTMAX, *VECTOR, "--intrinsics", ISA, "-i", "vla/vexp.16")
    said = cli.near()(*asked, "--explain")
    assert "`tune` lays it out in 2 steps" in said.out
    assert "stage Y" in said.out
    assert "none of these takes it; vla/vdiv" in said.out
    found = cli.near()(*asked, "--json").json
    assert [s["intrinsic"].split(".")[0] for s in found[0]["steps"]] == ["vla/vsub", "vla/vexp"]
    assert all("steps" not in m for m in found[1:])


@pytest.mark.slow
def test_match_and_tune_refuse_the_same(cli: Cli) -> None:
    near = cli.near()
    text = (CHIPS / "vector_isa.yaml").read_text()
    lines = [line for line in text.splitlines() if "{op: exp" not in line]
    (cli.folder / "own.yaml").write_text("\n".join(lines))
    out = near("match", *SOFTMAX, *VECTOR, "--intrinsics", "own.yaml").out
    lacks = "no instruction computes exp(f32) in exp(X[i, j] - M[i])"
    assert "vector-chip cannot compute it and has no host, so `tune` refuses the program" in out
    assert lacks in out
    assert lacks in near("tune", *SOFTMAX, *VECTOR, "--intrinsics", "own.yaml", "-d", "simulator", status=1).err


SPELT = [
    (None, "vector-chip has no host, and no instruction of its isa (vla) is known", "describes them with --intrinsics"),
    (("isa: vla", "isa: vlaa"), "no instruction of its isa (vla) is known", "are of isa vlaa: spell `isa` alike"),
    (("vla_64", "vla_32"), "vla/mma.s8 and 37 more instructions are known", "require vla_32, and the features of "
     "vector-chip are: vla_64. Spell both alike"),
]  # fmt: skip


@pytest.mark.parametrize("command", ["tune", "match"])
@pytest.mark.parametrize(("change", "said", "hint"), SPELT, ids=["forgotten", "isa", "feature"])
def test_instructions_that_a_chip_does_not_have(
    cli: Cli, command: str, change: tuple[str, str] | None, said: str, hint: str
) -> None:
    given: list[str] = []
    if change is not None:
        (cli.folder / "own.yaml").write_text((CHIPS / "vector_isa.yaml").read_text().replace(*change))
        given = ["--intrinsics", "own.yaml"]
    err = cli.near()(command, *SOFTMAX, *VECTOR, *given, status=2).err
    problem, help_, *more = err.splitlines()
    assert said in problem
    assert hint in help_
    assert not more


def test_with_a_host_it_computes_the_rest_and_one_line_says_what_is_not_used(cli: Cli) -> None:
    (cli.folder / "own.yaml").write_text((CHIPS / "vector_isa.yaml").read_text().replace("vla_64", "vla_32"))
    (cli.folder / "chip.yaml").write_text((CHIPS / "vector.yaml").read_text().replace("  host: none\n", ""))
    ran = cli.near()("match", *SOFTMAX, "-t", "chip.yaml", "--intrinsics", "own.yaml", status=1)
    unused = "vla/mma.s8, vla/vadd.vv.s32.16 and 36 more are not used: each needs vla_32, which vector-chip lacks"
    assert unused in ran.err
    assert "stage E" in ran.out
    assert "the host computes it" in ran.out
