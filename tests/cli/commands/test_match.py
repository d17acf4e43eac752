"""`match`: verdicts as exit statuses, and the JSON of the contract."""

from __future__ import annotations

import pytest
from cli.conftest import Cli

U8S8 = ("matmul", "-D", "m=512", "-D", "n=512", "-D", "k=512", "-D", "a=u8", "-D", "b=s8", "-D", "acc=s32")
F32 = ("matmul", "-D", "m=64", "-D", "n=64", "-D", "k=64")
FIRST = {
    "axes": {"i": ["j"], "k": ["p"]},
    "outer": ["i"],
    "operands": {"a": "A[i, p]", "b": "B[p, j]", "c": "C[i, j]"},
    "replicated": {"a": ["i"]},
    "padding": {"i": [512, 512], "k": [512, 512]},
    "utilisation": 1.0,
    "adapters": [],
    "conditions": [],
    "numerics": "bitwise",
    "assumptions": [],
}


@pytest.mark.slow
def test_the_json_of_one_intrinsic(cli: Cli) -> None:
    found = cli("match", *U8S8, "-i", "x86/vpdpbusd.zmm", "--json").json
    assert found.pop("seconds") >= 0
    mappings = found.pop("mappings")
    assert found.pop("notes")[0] == "the AMOS rule keeps 1 of the 3 mappings"
    assert found == {
        "schema": "autosched/match/1", "program": "matmul", "stage": "C", "intrinsic": "x86/vpdpbusd.zmm",
        "verdict": "match", "mapping_count": 3, "reason": None,
    }  # fmt: skip
    assert [set(m.pop("chains")) for m in mappings] == [{"a", "b", "c"}] * 3
    assert FIRST in mappings
    assert sorted(m["axes"]["i"] for m in mappings) == [["i"], ["i", "j"], ["j"]]


def test_operands_that_tune_computes_are_told(cli: Cli) -> None:
    """A variance was said to run as scalar code, and `tune` had it on multiply-adds."""
    cli = cli.near()
    (cli.folder / "spread.py").write_text(
        "def spread(X: f32[64, 64], mu: f32[64], V: f32[64]):\n    for i in range(64):\n        V[i] = 0\n"
        "        for k in range(64):\n            V[i] += (X[k, i] - mu[i]) ** 2\n"
    )
    said = "`tune` computes an operand first or on the way (X_factor[k, i] is X[k, i] - mu[i]); x86/vfmadd.f32.zmm"
    listed = cli("match", "spread.py:spread", "-t", "x86-avx512", status=1).out
    assert f"no instruction takes it as it stands. {said}, x86/vfmadd.f32.ymm" in " ".join(listed.split())
    one = ("match", "spread.py:spread", "-i", "x86/vfmadd.f32.zmm")
    assert f"{said} takes the rest" in " ".join(cli(*one, status=1).out.split())
    told = cli(*one, "--json", status=1).json
    assert told["verdict"] == "no"
    assert told["beforehand"]["adapters"] == ["factor X_factor[k, i]"]
    other = cli("match", "spread.py:spread", "-i", "x86/vpdpbusd.zmm", "--json", status=1).json
    assert "beforehand" not in other


def test_a_machines_own_instructions_are_listed_first(cli: Cli) -> None:
    rows = cli.near()("match", *F32, "-t", "x86-avx512").out.splitlines()[1:]
    portable = [row.startswith("portable/") for row in rows if "/" in row.split()[0]]
    assert portable == sorted(portable)
    assert len(set(portable)) == 2


def test_several_intrinsics_are_a_list(cli: Cli) -> None:
    cli = cli.near()
    found = cli("match", *U8S8, "-i", "x86/vpdpbusd*", "-i", "x86/vfmadd*", "--json").json
    verdicts = {m["intrinsic"]: m["verdict"] for m in found}
    assert verdicts["x86/vpdpbusd.zmm"] == "match"
    assert verdicts["x86/vfmadd.f32.zmm"] == "no"


def test_no_is_exit_status_one_and_says_why(cli: Cli) -> None:
    cli = cli.near()
    no = cli("match", *F32, "-i", "x86/vpdpbusd.zmm", "--json", status=1).json
    assert (no["verdict"], no["mappings"]) == ("no", [])
    assert no["reason"]["code"] == "DTYPE"
    said = cli("match", *F32, "-i", "x86/vpdpbusd.zmm", "--explain", status=1).out
    assert "x86/vpdpbusd.zmm" in said
    assert "DTYPE" in said or no["reason"]["message"] in said


@pytest.mark.slow
def test_a_target_limits_the_intrinsics(cli: Cli) -> None:
    cli = cli.near()
    names = {m["intrinsic"].split("/")[0] for m in cli("match", *U8S8, "-t", "x86-avx2", "--json", status=0).json}
    assert names == {"x86", "portable"}
    table = cli("match", *U8S8)
    assert "x86/vpdpbusd.zmm" in table.out
    assert "others do not fit" in table.err
    assert cli("match", *U8S8, "-q").err == ""


def test_a_user_s_instruction_needs_no_python(cli: Cli) -> None:
    cli = cli.near()
    (cli.folder / "mine.yaml").write_text(
        "isa: portable\nintrinsics:\n  - name: dot2\n    semantics: |\n"
        "      def dot2(a: f32[2], b: f32[2], c: f32[1]):\n          for k in range(2):\n"
        "              c[0] += a[k] * b[k]\n"
    )
    found = cli("match", *F32, "--intrinsics", "mine.yaml", "-i", "portable/dot2", "--json").json
    assert found["verdict"] == "match"
    also = cli("match", *F32, "-i", "portable/dot2", "--json", AUTOSCHED_INTRINSICS=str(cli.folder)).json
    assert also["mapping_count"] == found["mapping_count"]


def test_the_published_rule(cli: Cli) -> None:
    cli = cli.near()
    found = cli("match", *U8S8, "-i", "x86/vpdpbusd.zmm", "--rule", "amos", "--json").json
    assert (found["mapping_count"], found["mappings"][0]["axes"]) == (1, {"i": ["j"], "k": ["p"]})
    assert "notes" not in found
    assert "amos, superset" in cli("match", *U8S8, "--rule", "tvm", status=2).err


def test_the_answer_is_short_and_the_best_mapping_first(cli: Cli) -> None:
    cli = cli.near()
    asked = ("match", "depthwise_conv2d", "-D", "t=f16", "-i", "cuda/wmma.m16n16k16.f16.f32")
    found = cli(*asked)
    lines = found.out.splitlines()
    assert len(lines) <= 24
    assert "3.52 % of the lanes useful (j: 1 of 16, k: 9 of 16)" in lines[1]
    assert "--explain says what was proved" in found.err
    quiet = cli(*asked, "-q")
    assert quiet.err == ""
    assert " ok " not in quiet.out
    mappings = cli(*asked, "--json").json["mappings"]
    useful = [m["utilisation"] for m in mappings]
    assert useful[0] == max(useful)
    assert "ok body" in cli(*asked, "--explain").out


def test_tables_have_the_names_of_the_file(cli: Cli) -> None:
    """The second loop over j is j_2 inside of the program, and in no table."""
    cli = cli.near()
    (cli.folder / "two.py").write_text(
        "def f(A: f32[8, 16], B: f32[16, 32], C: f32[8, 32], M: f32[8]):\n"
        "    for i in range(8):\n"
        "        M[i] = 0\n"
        "        for j in range(16):\n"
        "            M[i] += A[i, j]\n"
        "    for i, j in grid(8, 32):\n"
        "        C[i, j] = 0\n"
        "        for p in range(16):\n"
        "            C[i, j] += A[i, p] * B[p, j]\n"
    )
    found = cli("match", "two.py", "-i", "x86/vfmadd.f32.*")
    assert "i←j" in found.out
    assert "_2" not in found.out
    axes = cli("match", "two.py", "-i", "x86/vfmadd.f32.ymm", "--json").json
    assert "j_2" in str(axes)


def test_a_form_that_fits_is_printed(cli: Cli) -> None:
    cli = cli.near()
    (cli.folder / "weights.py").write_text(
        "def f(A: f32[8, 32], Q: const[u4[32, 16]], S: const[f32[4, 16]], C: f32[8, 16]):\n"
        "    for i, j, p in grid(8, 16, 32):\n"
        "        C[i, j] += A[i, p] * ((f32(Q[p, j]) - 8.0) * S[p // 8, j])\n"
    )
    said = cli("match", "weights.py", "-i", "x86/vfmadd.f32.ymm", "--explain", status=1).out
    assert "Q_factor[p_f, j_f] = (f32(Q[p_f, j_f]) - 8.0) * S[p_f // 8, j_f]" in said
    found = cli("match", "weights.py", "-i", "x86/vfmadd.f32.ymm", "--explain", "--json", status=1).json
    assert found["form"]["parts"] == ["Q_factor"]
    assert found["form"]["ran"]


@pytest.mark.slow
def test_plans_of_tune_have_the_form(cli: Cli) -> None:
    cli = cli.near()
    (cli.folder / "norm.py").write_text(
        "def f(X: f32[8, 32], N: f32[8], W: f32[32, 16], C: f32[8, 16]):\n"
        "    for i, j, p in grid(8, 16, 32):\n"
        "        C[i, j] += X[i, p] * rsqrt(N[i]) * W[p, j]\n"
    )
    asked = ("tune", "norm.py", "-t", "x86-avx2", "-d", "simulator", "--trials", "2", "--store", "s.db")
    assert "[factor X_factor[i, p]]" in cli(*asked).out
    assert cli(*asked, "--json").json["forms"][0]["parts"] == ["X_factor"]
