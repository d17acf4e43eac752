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
    assert [s.split(":")[0] for s in steps] == ["  vla/vsub.vv.f32", "  vla/vexp"]
    assert "scalar or vector code" not in out
    assert "portable/" not in out


@pytest.mark.slow
def test_match_of_one_instruction_says_them_too(cli: Cli) -> None:
    asked = ("match", *SOFTMAX, *VECTOR, "--intrinsics", ISA, "-i", "vla/vexp")
    said = cli.near()(*asked, "--explain")
    assert "`tune` lays it out in 2 steps" in said.out
    assert "stage Y" in said.out
    assert "none of these takes it; vla/vdiv" in said.out
    found = cli.near()(*asked, "--json").json
    assert [s["intrinsic"] for s in found[0]["steps"]] == ["vla/vsub.vv.f32", "vla/vexp"]
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


@pytest.mark.slow
def test_match_says_what_tune_refuses_though_instructions_fit(cli: Cli) -> None:
    """Every stage has its instruction, and results have no way out."""
    near = cli.near()
    text = (CHIPS / "vector_isa.yaml").read_text()
    (cli.folder / "own.yaml").write_text(text[: text.index("  - name: store.{x}")])
    out = near("match", *SOFTMAX, *VECTOR, "--intrinsics", "own.yaml").out
    lacks = "nothing copies f32 from accumulators to memory"
    assert "`tune` refuses the program: vector-chip has no host" in out
    assert lacks in out
    assert lacks in near("tune", *SOFTMAX, *VECTOR, "--intrinsics", "own.yaml", "-d", "simulator", status=1).err


SPELT = [
    (None, "vector-chip has no host, and no instruction of its isa (vla) is known", "describes them with --intrinsics"),
    (("isa: vla", "isa: vlaa"), "no instruction of its isa (vla) is known", "are of isa vlaa: spell `isa` alike"),
    (("vla_64", "vla_32"), "vla/mma.s8 and 24 more instructions are known", "require vla_32, and the features of "
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
    ran = cli.near()("match", *SOFTMAX, "-t", "chip.yaml", "--intrinsics", "own.yaml")
    unused = "vla/mma.s8, vla/vadd.vv.s32 and 23 more are not used: each needs vla_32, which vector-chip lacks"
    assert unused in ran.err
    assert "stage E" in ran.out
    assert "the host computes it" in ran.out


SCALED = """
isa: toy
intrinsics:
  - name: scale32
    semantics: |
      def mma(a: s8[16, 64], b: s8[64, 8], s: s32[16, 2], c: s32[16, 8]):
          for i, j, k in grid(16, 8, 64):
              c[i, j] += s32(a[i, k]) * s32(b[k, j]) * s[i, k % 2]
    timing: {latency: 4, interval: 1}
"""
PROGRAM = """
def scaled(A: s8[16, 64], B: s8[64, 8], S: s32[16, 2], C: s32[16, 8]):
    for i, j in grid(16, 8):
        C[i, j] = 0
        for k in range(64):
            C[i, j] += s32(A[i, k]) * s32(B[k, j]) * S[i, k % 2]
"""


@pytest.mark.parametrize("host", [True, False])
def test_tune_says_at_once_that_no_plan_uses_what_match_reports(cli: Cli, host: bool) -> None:
    near, chip = cli.near(), (CHIPS / "vector.yaml").read_text()
    chip = chip.replace("isa: vla", "isa: toy").replace("features: [vla_64]", "features: []")
    (cli.folder / "chip.yaml").write_text(chip.replace("  host: none\n", "") if host else chip)
    (cli.folder / "toy.yaml").write_text(SCALED)
    (cli.folder / "p.py").write_text(PROGRAM)
    asked = ("p.py", "-t", "chip.yaml", "--intrinsics", "toy.yaml")
    assert "toy/scale32" in near("match", *asked).out
    err = near("tune", *asked, "-d", "simulator", "-n", "1", status=0 if host else 1).err
    why = "s is indexed by k % 2, which is no sum of axes"
    if host:
        matched, note, *_ = err.splitlines()
        assert matched.startswith("match  toy/scale32")
        assert note == f"note   stage C: toy/scale32 fits, and no plan uses it: {why}"
    else:
        assert f"p.py:6:13: C: toy/scale32 fits, and no plan can use it: {why}" in err


@pytest.mark.slow
def test_the_match_line_names_instructions_of_steps(cli: Cli) -> None:
    err = cli.near()("tune", *SOFTMAX, *VECTOR, "--intrinsics", ISA, "-d", "simulator", "-n", "1").err
    (line,) = (line for line in err.splitlines() if line.startswith("match "))
    assert "vla/vredmax.f32" in line
    rewritten = line.split("; as rewritten ")[1]
    assert "vla/vsub" in rewritten
    assert "vla/vexp" in rewritten
    assert "portable" not in line
