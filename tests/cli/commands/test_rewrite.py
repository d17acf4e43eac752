"""`rewrite`: verdicts as exit statuses, the JSON of the contract, the program written out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cli.conftest import Cli

from autosched import ir

EMPTY_ROWS = """
def empty_rows(S: f32[n, l], V: f32[l, d], O: f32[n, d], *, n=64, l=96, d=16):
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], (S[i, j] if j < i - 5 else -inf))
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp((S[i, j] if j < i - 5 else -inf) - M[i])
    for i, e in grid(n, d):
        O[i, e] = 0
        for j in range(l):
            O[i, e] += exp((S[i, j] if j < i - 5 else -inf) - M[i]) / Z[i] * V[j, e]
"""


@pytest.fixture
def cli(cli: Cli) -> Cli:
    return cli.near()


@pytest.mark.slow
def test_a_refusal_names_the_level_that_accepts_it(cli: Cli) -> None:
    rounded = ("attention_rounded", "-D", "n=64", "-D", "l=64")
    said = "accept it with --numerics real"
    assert said in " ".join(cli("rewrite", *rounded).out.split())
    assert "accept that with --numerics real" in cli("rewrite", *rounded, "--explain").out
    assert "; fix: --numerics real, where one does" in cli("match", *rounded, "--explain", "-i", "x86/vfmadd*").out
    first, *_ = cli("rewrite", *rounded, "--json").json["rewrites"]
    assert (first["reason"]["code"], first["reason"]["numerics"]) == ("CAST", "real")
    assert "accept it" not in cli("rewrite", *rounded, "--numerics", "real").out


def test_a_pass_that_the_level_keeps_out_says_which_one_opens_it(cli: Cli) -> None:
    said = cli("rewrite", "softmax", "-D", "m=4", "-D", "n=64", "--explain", "--numerics", "bitwise").out
    assert "one pass over j_2 computes both (online, rescaled; fix: --numerics rescaled)" in said
    assert "fix:" not in cli("rewrite", "softmax", "-D", "m=4", "-D", "n=64", "--explain").out


def test_a_proof_says_which_rounding_is_taken_to_be_exact(cli: Cli) -> None:
    said = cli("rewrite", "attention_rounded", "--numerics", "real", "--explain", "--only", "online").out
    assert "  numerics: real; equal over the reals, with no bound on the error\n" in said
    rounded = "  A rounds exp(S[b_4, i_4, j_4] * rsqrt(f32(16.0)) - M[b_4, i_4]) to f16: that is taken to be exact"
    assert f"{rounded}, and one pass rounds another number there\n" in said
    assert "taken to be exact" not in cli("rewrite", "attention", "--numerics", "real", "--explain").out


def test_the_json_of_softmax(cli: Cli) -> None:
    found = cli("rewrite", "softmax", "-D", "m=4", "-D", "n=64", "--only", "online", "--json").json
    assert (found["schema"], found["program"]) == ("autosched/rewrite/1", "softmax")
    (one,) = found["rewrites"]
    assert {o["by"] for o in one.pop("obligations")} == {"z3"}
    assert "M_moved" in ir.parse(one.pop("after")).tensors
    assert one == {
        "name": "online", "verdict": "proved", "axis": "j_2", "stages": ["M", "S"], "rescale": {"S": "exp(M - M')"},
        "deferred": {}, "merge": True, "bounded": True, "numerics": "rescaled", "conditions": [], "reason": None,
        "error": "(n + 9 b + 2 x + 11) u Σ|terms|, u = 2^-24",
    }  # fmt: skip


def test_what_explain_says_is_defined_where_it_is_said(cli: Cli) -> None:
    (cli.folder / "empty.py").write_text(EMPTY_ROWS)
    lines = cli("rewrite", "empty.py", "--only", "online", "--explain").out.splitlines()
    bound = next(n for n, line in enumerate(lines) if "error at most (n + 9 b + 2 x" in line)
    assert [said.split(":")[0].strip() for said in lines[bound + 1].split(";")] == ["n", "b", "x", "u"]
    whole = "  j_3: bounds: 0 <= j_3 < 96 and j_3 < i_3 - 5 exactly where 0 <= j_3 < i_3 - 5 (nowhere if i_3 - 5 <= 0)"
    assert any(line.startswith(whole) for line in lines)
    finite = "  elements of V that the mask leaves out are taken to be finite: as written they are multiplied by 0"
    assert any(line.startswith(finite) for line in lines)
    mixed = EMPTY_ROWS.replace("exp((S[i, j]", "exp((f32(f16(S[i, j]))")
    (cli.folder / "mixed.py").write_text(mixed)
    said = cli("rewrite", "mixed.py", "--only", "online", "--explain", status=1).out
    assert "UNSUPPORTED at Z: M is the max of " in said
    assert "has other values relative to it: it need not be 0 as long as M is infinite" in said


def test_no_rewrite_is_exit_status_one(cli: Cli) -> None:
    assert "no stages" in cli("rewrite", "matmul", status=1).out
    said = cli("rewrite", "softmax", "--only", "online", "--numerics", "reassociated", status=1)
    assert "--numerics rescaled" in said.out


@pytest.mark.slow
def test_the_program_is_written_and_is_one(cli: Cli) -> None:
    apart = replace(cli, inside=False)
    apart("rewrite", "softmax", "-D", "m=4", "--block", "16", "--only", "online", "-o", "one_pass.py", status=0)
    written = ir.load(cli.folder / "one_pass.py")
    assert "M_moved" in written.tensors


def test_a_program_of_a_person_is_not_overwritten(cli: Cli) -> None:
    text = str(ir.workload("softmax", m=4, n=64))
    mine = cli.folder / "mine.py"
    mine.write_text(text)
    assert "did not write it" in cli("rewrite", "mine.py", "-o", "mine.py", status=2).err
    assert mine.read_text() == text
    for _ in range(2):
        assert "autosched tune two.py" in cli("rewrite", "mine.py", "-o", "two.py", status=0).err
    said = cli("rewrite", "mine.py", "--numerics", "bitwise", "--only", "online", "-o", "three.py", status=1)
    assert "was not written" in said.err
    assert not (cli.folder / "three.py").exists()


def test_a_counterexample_is_told_by_reference(cli: Cli) -> None:
    text = str(ir.workload("softmax", m=4, n=64))
    (cli.folder / "across.py").write_text(text.replace("exp(", "tanh("))
    (cli.folder / "sign.py").write_text(text.replace("exp(X[i, j_2] - M[i])", "exp(M[i] - X[i, j_2])"))
    across = cli("rewrite", "across.py", "--only", "online", "--explain", status=1).out.splitlines()
    assert across[1].startswith("  NOT_SEPARABLE at S: tanh(")
    assert [line.count(" at X[") for line in across[3:5]] == [2, 2]
    sign = cli("rewrite", "sign.py", "--only", "online", "--explain", status=1).out
    assert "    M = -inf: 0\n    M = 0: nan\n" in sign


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--numerics", "exact"), "numerics level"),
        (("--block", "0"), "holds nothing"),
        (("--only", "magic"), "mask to bounds"),
    ],
)
def test_what_cannot_be_right_is_refused(cli: Cli, flags: tuple[str, str], text: str) -> None:
    assert text in cli("rewrite", "softmax", *flags, status=2).err


def test_every_question_is_written(cli: Cli) -> None:
    cli("rewrite", "softmax", "-D", "m=4", "-D", "n=64", "--dump-smt", "questions", status=0)
    assert list((cli.folder / "questions").glob("*.smt2"))


def test_stages_of_one_answer_stand_together(cli: Cli) -> None:
    lines = cli("rewrite", "attention", "-D", "mask=causal", "-D", "n=16", "-D", "l=16", "--explain").out.splitlines()
    section = lines[lines.index("stages that read each other's results:") + 1 :]
    heads = [n for n, line in enumerate(section) if line.endswith(":")]
    said = [section[n].strip() for n in heads]
    assert "S is kept whole, or computed a block at a time in a pass (--tile) or a chain:" in said
    assert len(said) == len(set(said))
    whole = heads[said.index("S is kept whole, or computed a block at a time in a pass (--tile) or a chain:")]
    assert [line.split()[0] for line in section[whole + 1 : whole + 4]] == ["M", "Z", "A"]
    assert all(line.startswith("    ") and " reads S[" in line for line in section[whole + 1 : whole + 4])


SCALED_ROWS = """
def rms(X: f32[m, k], W: f32[k, n], Y: f32[m, n], *, m=16, k=64, n=32):
    Q: f32[m]
    R: f32[m]
    for i in range(m):
        Q[i] = 0
        for p in range(k):
            Q[i] += X[i, p] * X[i, p]
    for i in range(m):
        R[i] = rsqrt(Q[i] + 0.01)
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += X[i, p] * R[i] * W[p, j]
"""


def test_a_factor_that_one_pass_takes_out_is_listed_where_it_is_asked_for(cli: Cli) -> None:
    """`tune` has plans with both; beside `online` the factor is told there."""
    (cli.folder / "rms.py").write_text(SCALED_ROWS)
    assert {v["name"] for v in cli("rewrite", "rms.py", "--json").json["rewrites"]} >= {"online"}
    (only,) = cli("rewrite", "rms.py", "--only", "defer", "--json").json["rewrites"]
    assert (only["name"], only["stages"]) == ("defer", ["Y"])
