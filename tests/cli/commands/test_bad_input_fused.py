"""Fused programs as people get them wrong: `rewrite`, `match` and `tune` refuse or compute them, with the reason."""

from __future__ import annotations

import numpy as np
import pytest
from cli.conftest import Cli

import autosched
from autosched import ir
from autosched.errors import AutoschedError
from autosched.ir.program import Program

HEADS = {
    "scores": "S: f32[n, l], V: f32[l, d], O: f32[n, d], *, n=4, l=8, d=4",
    "lengths": "S: f32[n, l], V: f32[l, d], L: s32[n], O: f32[n, d], *, n=4, l=8, d=4",
    "offsets": "S: f32[n, l], V: f32[l, d], F: s32[n1], O: f32[n, d], *, n=4, l=8, d=4, n1=5",
    "rows": "X: f32[n, l], Y: f32[n], *, n=4, l=8",
}
SOFTMAX = """
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], SCORE)
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(SCORE - M[i])
    for i, e in grid(n, d):
        O[i, e] = 0
        for j in range(l):
            O[i, e] += exp(SCORE - M[i]) / Z[i] * V[j, e]
"""
WRONG_SIGN = SOFTMAX.replace("exp(SCORE - M[i])", "exp(M[i] - SCORE)").replace("SCORE", "S[i, j]")
CAST = SOFTMAX.replace("SCORE - M[i]", "f32(bf16(SCORE - M[i]))").replace("SCORE", "S[i, j]")
LENGTHS = "    assume(0 <= L <= 8)" + SOFTMAX.replace("SCORE", "(S[i, j] if s32(j) < L[i] else -inf)")
OFFSETS = SOFTMAX.replace("SCORE", "(S[i, j] if F[i] <= s32(j) and s32(j) < F[i + 1] else -inf)")
BY_HAND = """
    for i in range(n):
        Y[i] = 0
        for j in range(l):
            Y[i] = tanh(Y[i] * 0.5 + X[i, j])
"""
BY_HAND_IN_ORDER = """
    for i in range(n):
        Y[i] = 0
        for j in range(l):
            Y[i] = Y[i] * 0.5 + X[i, j]
"""
GROUPS = """
def groups(X: f32[n, k], W: s8[k, m], D: f32[g, m], Y: f32[n, m], *, n=4, k=20, m=4, group=8):
    g = (k + group - 1) // group
    for i, j in grid(n, m):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += X[i, p] * (f32(W[p, j]) * D[p // group, j])
"""
PAGES = """
def pages(Q: f32[d], K: f32[w, d], P: s32[l], V: f32[w, d], O: f32[d], *, l=6, d=4, w=8):
    S: f32[l]
    M: f32[1]
    Z: f32[1]
    for j in range(l):
        S[j] = 0
        for p in range(d):
            S[j] += Q[p] * K[P[j], p]
    for u in range(1):
        M[u] = -inf
        for j in range(l):
            M[u] = max(M[u], S[j])
    for u in range(1):
        Z[u] = 0
        for j in range(l):
            Z[u] += exp(S[j] - M[u])
    for u, e in grid(1, d):
        O[e] = 0
        for j in range(l):
            O[e] += exp(S[j] - M[u]) / Z[u] * V[P[j], e]
"""


def text_of(name: str, head: str, body: str) -> str:
    return f"def {name}({HEADS[head]}):\n{body}"


PROGRAMS = {
    "wrong_sign": text_of("wrong_sign", "scores", WRONG_SIGN),
    "cast": text_of("cast", "scores", CAST),
    "lengths": text_of("lengths", "lengths", LENGTHS),
    "offsets": text_of("offsets", "offsets", OFFSETS),
    "by_hand": text_of("by_hand", "rows", BY_HAND),
    "by_hand_in_order": text_of("by_hand_in_order", "rows", BY_HAND_IN_ORDER),
    "groups": GROUPS,
    "pages": PAGES,
}
REFUSED = {
    "wrong_sign": ("NOT_DISTRIBUTIVE", "is not proved to be at most 1"),
    "cast": ("CAST", "rounds S[i_3, j_3] - M[i_3] to bf16"),
    "by_hand": ("DEPENDS", "an iteration of j reads Y[i] of the one before"),
    "by_hand_in_order": ("DEPENDS", "the loop keeps its order"),
}


def program(name: str, **sizes: int) -> Program:
    return ir.parse(PROGRAMS[name], sizes=dict(sizes))


@pytest.mark.parametrize("name", REFUSED)
def test_rewrite_says_why_not(cli: Cli, name: str) -> None:
    (cli.folder / "p.py").write_text(PROGRAMS[name])
    code, text = REFUSED[name]
    near = cli.near()
    found = near("rewrite", "p.py", "--json", "--only", "online", status=1).json["rewrites"]
    assert {r["verdict"] for r in found} == {"no"}
    assert code in {r["reason"]["code"] for r in found}
    said = near("rewrite", "p.py", "--explain", "--only", "online", status=1).out
    assert f"{code} at " in said
    assert text in said
    assert near("rewrite", "p.py", "--only", "online", "-o", "q.py", status=1).out
    assert not (cli.folder / "q.py").exists()


@pytest.mark.parametrize("name", PROGRAMS)
def test_match_answers(cli: Cli, name: str) -> None:
    (cli.folder / "p.py").write_text(PROGRAMS[name])
    assert ": no" in cli.near()("match", "p.py", "-i", "x86/vpdpbusd.zmm", "--explain", status=1).out


@pytest.mark.slow
@pytest.mark.parametrize("device", [("simulator", "-t", "x86-avx2"), ("cpu",)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_tune_computes_the_program_as_written(cli: Cli, name: str, device: tuple[str, ...]) -> None:
    text = PROGRAMS[name].replace("w=8):", "w=8):\n    assume(0 <= P <= 7)")
    (cli.folder / "p.py").write_text(text)
    found = cli.near()("tune", "p.py", "-n", "3", "-d", *device, "--threads", "2", "--json", status=0).json
    assert found["verified"]["ok"]
    assert np.isfinite(found["verified"]["tolerance"])


HARD = {
    "lengths": {"L": [[0, 0, 0, 0], [0, 8, 1, 3], [-5, 100, 0, 8]]},
    "offsets": {"F": [[0, 0, 0, 0, 0], [8, 6, 4, 2, 0], [0, 5, 3, 8, 1], [-3, 2, 99, 5, 8]]},
}


@pytest.mark.parametrize(("name", "given"), [(n, (k, v)) for n, g in HARD.items() for k, vs in g.items() for v in vs])
@pytest.mark.parametrize("how", [{"block": 3}, {"block": 2, "parts": 3}, {"block": 3, "tile": 2}])
def test_rows_that_a_mask_empties(name: str, given: tuple[str, list[int]], how: dict[str, int]) -> None:
    """Lengths of 0, below it or too long, and offsets that are not sorted: what the program computes, which is no
    number for a row without an element."""
    before = program(name)
    found = next(v for v in autosched.rewrites(before, **how) if v.name == "online")
    assert (found.verdict, found.numerics) == ("proved", "rescaled")
    assert found.after is not None
    data = ir.random_inputs(before, np.random.default_rng(0)) | {given[0]: np.array(given[1], np.int32)}
    with np.errstate(all="ignore"):
        expected, got = (ir.run(p, data)["O"] for p in (before, found.after))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", HARD)
def test_kernels_on_rows_that_a_mask_empties(name: str) -> None:
    before = program(name)
    kernel = autosched.tune(before, trials=3, store=":memory:", seed=0).best.build()
    for key, several in HARD[name].items():
        for numbers in several:
            data = ir.random_inputs(before, np.random.default_rng(0)) | {key: np.array(numbers, np.int32)}
            with np.errstate(all="ignore"):
                expected = ir.run(before, data)["O"]
            np.testing.assert_allclose(kernel(**data), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["wrong_sign", "cast", "lengths", "offsets", "by_hand"])
@pytest.mark.parametrize("command", ["rewrite", "match", "tune"])
def test_an_axis_of_length_0(cli: Cli, name: str, command: str) -> None:
    (cli.folder / "p.py").write_text(PROGRAMS[name])
    flags = {"tune": ("-n", "1", "-d", "simulator", "-t", "x86-avx2"), "match": ("-i", "x86/vfmadd.f32.ymm")}
    said = cli.near()(command, "p.py", "-D", "l=0", *flags.get(command, ()), status=2)
    assert "is at least 1, and l is 0" in said.err


@pytest.mark.parametrize("how", [{"block": 3}, {"block": 2, "parts": 3}, {"block": 3, "tile": 2}])
def test_a_loop_that_never_runs(how: dict[str, int]) -> None:
    """A maximum of nothing is minus infinity, and a sum of nothing 0."""
    before = ir.parse(PROGRAMS["lengths"].replace("range(l)", "range(l - 8)").replace(" / Z[i]", ""))
    data = ir.random_inputs(before, np.random.default_rng(0))
    for found in autosched.rewrites(before, **how):
        assert found.after is None or np.array_equal(ir.run(found.after, data)["O"], ir.run(before, data)["O"])


@pytest.mark.parametrize("k", [20, 9, 8, 7, 17])
def test_groups_that_do_not_divide(k: int) -> None:
    """The last group is shorter; one group alone is a group."""
    before = program("groups", k=k)
    for found in autosched.rewrites(before):
        assert found.verdict == "proved"
        assert found.after is not None
        data = ir.random_inputs(before, np.random.default_rng(0))
        expected, got = (ir.run(p, data)["Y"] for p in (before, ir.parse(str(found.after))))
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    assert [v.name for v in autosched.rewrites(before)] == (["defer"] if k >= 8 else [])


def test_pages_out_of_range_are_refused_when_run() -> None:
    before = program("pages")
    data = ir.random_inputs(before, np.random.default_rng(0)) | {"P": np.arange(6, dtype=np.int32)}
    for found in autosched.rewrites(before):
        assert found.after is not None
        for wrong in (-1, 8, 2**31 - 1):
            bad = data | {"P": np.array([0, 1, wrong, 2, 3, 4], np.int32)}
            for either in (before, found.after):
                with pytest.raises(AutoschedError, match=r"\bP\b|extent 8"):
                    ir.run(either, bad)


GATHER = """
def gather(E: f32[100, 64], I: s32[32], Y: f32[32, 64]):
    for i, j in grid(32, 64):
        Y[i, j] = E[{index}, j] * 2
"""


@pytest.mark.slow
def test_pages_without_a_range_are_drawn_inside(cli: Cli) -> None:
    (cli.folder / "p.py").write_text(PROGRAMS["pages"])
    cli.near()("tune", "p.py", "-n", "1", "-d", "simulator", "-t", "x86-avx2")


def test_indices_of_which_nothing_is_known_end_the_run_with_what_to_assume(cli: Cli) -> None:
    simulated = ("-n", "3", "-d", "simulator", "-t", "x86-avx2")
    (cli.folder / "g.py").write_text(GATHER.format(index="I[i] ^ 7"))
    said = cli("tune", "g.py", *simulated, status=2).err
    assert "g.py:4:9: dimension 0 of E has extent 100; the program reaches index" in said
    assert "needs an assume about I that keeps I[i] ^ 7, the index of dimension 0 of E, from 0 to 99" in said
    assert "trial" not in said
    assumed = GATHER.replace("64]):", "64]):\n    assume(0 <= I <= 50)")
    (cli.folder / "a.py").write_text(assumed.format(index="I[i] ^ 7"))
    cli.near()("tune", "a.py", *simulated)
    (cli.folder / "p.py").write_text(GATHER.format(index="I[i] * I[i]"))
    cli.near()("tune", "p.py", *simulated)


@pytest.mark.slow
def test_kernels_refuse_pages_out_of_range() -> None:
    before = ir.parse(PROGRAMS["pages"].replace("w=8):", "w=8):\n    assume(0 <= P <= 7)"))
    kernel = autosched.tune(before, trials=3, store=":memory:", seed=0).best.build()
    data = ir.random_inputs(before, np.random.default_rng(0))
    np.testing.assert_allclose(kernel(**data), ir.run(before, data)["O"], rtol=1e-5)
    for wrong in (-1, 8, 2**31 - 1):
        with pytest.raises(AutoschedError, match=r"\bP\b|extent 8"):
            kernel(**(data | {"P": np.array([0, 1, wrong, 2, 3, 4], np.int32)}))
