"""Forms that an instruction takes: told with what they gain, and written to a file that can be tuned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.conftest import Cli

import autosched
from autosched.cli.answers.forms import worth_telling
from autosched.search.tuning.forms import Gain
from autosched.tensorize.explanation.forms import Form

NORM = """
def norm(X: f32[m, k], G: f32[k], W: f32[k, n], C: f32[m, n], *, m=24, n=64, k=48):
    S: f32[m]
    for i in range(m):
        S[i] = 0
        for p in range(k):
            S[i] += X[i, p] * X[i, p]
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += X[i, p] * rsqrt(S[i]) * G[p] * W[p, j]
"""
SCALED = """
def scaled(X: f32[m, k], G: f32[k], W: f32[k, n], C: f32[m, n], *, m=24, n=64, k=48):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += X[i, p] * W[p, j] * exp(G[p])
"""
SUM = """
def distances(A: f32[n, m], B: f32[n, m], C: f32[n], *, n=16, m=32):
    for i in range(n):
        C[i] = 0
        for j in range(m):
            C[i] += exp(A[i, j] - B[i, j])
"""
HERE = ("-t", "x86-avx2")
FMA = "x86/vfmadd.f32.ymm"
FITS = f"stage C fits {FMA} with X_factor computed beforehand"


@pytest.fixture
def here(cli: Cli) -> Cli:
    (cli.folder / "norm.py").write_text(NORM)
    (cli.folder / "sum.py").write_text(SUM)
    return cli.near()


def test_a_stage_that_nothing_takes_is_named(here: Cli) -> None:
    none = "no instruction takes it; it runs as scalar or vector code. --explain says why"
    assert f"stage C (sum.py:6:13): {none}" in here("match", "sum.py", *HERE, status=1).out
    some = here("match", "norm.py", *HERE).out
    assert FMA in some
    (line,) = (line for line in some.splitlines() if line.startswith("stage "))
    asks = r"no instruction takes it as it stands. `tune` also asks about its sums without rsqrt\(S\[i_2\]\), by which"
    assert re.match(rf"stage C \(norm\.py:\d+:\d+\): {asks}", line)


@pytest.mark.slow
def test_a_factor_that_tune_defers_is_named(here: Cli) -> None:
    text = "def f(X: f16[8, 64], W: const[u4[64, 8]], S: f32[2, 8], Y: f32[8, 8]):\n    for i, j in grid(8, 8):\n"
    text += "        Y[i, j] = 0\n        for p in range(64):\n"
    text += "            Y[i, j] += f32(X[i, p]) * (f32(W[p, j]) * S[p // 32, j])\n"
    (here.folder / "four.py").write_text(text)
    out = here("match", "four.py", *HERE, status=1).out
    assert "`tune` also asks about its sums without S[p_group, j_2], by which they are multiplied afterwards" in out


@pytest.mark.slow
def test_forms_stand_at_the_top_with_what_they_gain(here: Cli) -> None:
    first, gain, *text = here("match", "norm.py", *HERE, "--explain").out.splitlines()
    assert first.startswith(FITS)
    assert "by the clock" in gain
    assert "as fast as the best plan without it (" in gain
    assert "use it   autosched match norm.py -t x86-avx2 --write-form norm_form.py" in "\n".join(text)
    answers = here("match", "norm.py", *HERE, "-i", FMA, "--json").json
    assert not any("form" in answer for answer in answers)  # without --explain there is none
    (form,) = (a["form"] for a in here("match", "norm.py", *HERE, "--explain", "--json").json if "form" in a)
    assert form["clock_s"]["rewritten"] <= form["clock_s"]["as_written"]  # plans take the form by themselves


def test_a_form_is_written_and_matches(here: Cli) -> None:
    said = here("match", "norm.py", "-D", "m=12", *HERE, "--write-form", "new.py").out
    assert said == f"wrote new.py: {FITS}\n"
    text = Path(here.folder / "new.py").read_text()
    assert "X: f32[12, 48]" in text
    (answer,) = (a for a in here("match", "new.py", *HERE, "-i", FMA, "--json").json if a["stage"] == "C")
    assert answer["verdict"] == "match"
    assert here("match", "norm.py", *HERE, "--write-form", "new.py", "--json").json["file"] == "new.py"


def test_a_file_of_ones_own_is_not_written_over(here: Cli) -> None:
    assert "autosched did not write it" in here("match", "norm.py", *HERE, "--write-form", "norm.py", status=2).err
    assert Path(here.folder / "norm.py").read_text() == NORM
    assert "cannot write" in here("match", "norm.py", *HERE, "--write-form", "no/new.py", status=2).err


def test_no_form_is_a_no(here: Cli) -> None:
    assert "no form of distances was found" in here("match", "sum.py", *HERE, "--write-form", "new.py", status=1).err
    assert not (here.folder / "new.py").exists()


@pytest.mark.slow
def test_tune_says_under_the_best_what_a_form_gains(here: Cli) -> None:
    (here.folder / "scaled.py").write_text(SCALED)
    done = here("tune", "scaled.py", *HERE, "-d", "simulator", "-n", 1, "--store", ":memory:").out.splitlines()
    names = [line.split(" ")[0] for line in done if line[:1].strip()]
    assert names[names.index("best") + 1] == "faster"
    at = next(n for n, line in enumerate(done) if line.startswith("faster "))
    said = "faster with stage C in the form shown below: by the clock .*x as fast as the best plan without it"
    assert re.fullmatch(said, done[at])
    commands = "autosched match scaled.py -t x86-avx2 --write-form scaled_form.py && autosched tune scaled_form.py"
    assert done[at + 1].strip().startswith(commands)
    assert any(line.startswith(f"form   stage C fits {FMA} with W_factor computed beforehand") for line in done)


@pytest.mark.parametrize(
    ("gain", "used", "told"),
    [(None, (), True), (None, ("C",), False), (Gain(2.0, 1.0), ("C",), True), (Gain(1.0, 1.0), (), False)],
)
def test_which_forms_are_told(gain: Gain | None, used: tuple[str, ...], told: bool) -> None:
    given = autosched.parse(SCALED)
    form = Form("C", FMA, autosched.workload("matmul", m=4, n=4, k=4), ("A_factor",), True, True)
    assert worth_telling(form, gain, used, given, given) is told
    assert not worth_telling(form, gain, used, given, form.program)  # the best plan is that form already
    named = autosched.parse(str(form.program).replace("for i, j in", "for q, r in").replace("[i, j]", "[q, r]")
                            .replace("A[i,", "A[q,").replace(", j]", ", r]"))  # fmt: skip
    assert not worth_telling(form, gain, used, given, named)


def test_a_form_whose_parts_the_best_plan_has_is_not_told() -> None:
    """Under other names, and with the sums in another place."""
    head = "def f(X: f32[8, 8], S: f32[8], W: f32[8, 8], C: f32[8, 8]):\n"
    loop = "    for i, j, p in grid(8, 8, 8):\n        C[i, j] += {} * W[p, j]\n"
    part = "    {0}: f32[8, 8]\n    for i, p in grid(8, 8):\n        {0}[i, p] = X[i, p] * rsqrt(S[i])\n"
    other = part.replace("rsqrt(S[i])", "S[i]")
    kept = loop.replace("i, j, p in", "j, i, p in").replace("C[i, j] +=", "C[i, j] = C[i, j] +")
    given = autosched.parse(head + loop.format("X[i, p] * rsqrt(S[i])"))
    form = Form("C", FMA, autosched.parse(head + part.format("F") + loop.format("F[i, p]")), ("F",), True, True)
    for made, told in ((part, False), (other, True)):
        best = autosched.parse(head + made.format("G") + kept.format("G[i, p]"))
        assert worth_telling(form, Gain(2.0, 1.0), (), given, best) is told


@pytest.mark.slow
def test_a_form_that_plans_have_by_themselves_is_not_proposed(here: Cli) -> None:
    simulated = ("-d", "simulator", "-n", 1)
    done = here("tune", "norm.py -D m=12", *HERE, *simulated)
    assert not any(line.startswith(("form ", "faster ")) for line in done.out.splitlines())
    (form,) = here("tune", "norm.py -D m=12", *HERE, *simulated, "--json").json["forms"]
    assert form["clock_s"]["rewritten"] <= form["clock_s"]["as_written"]
