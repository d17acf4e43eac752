"""Random sums whose factor is the same for groups of the axis: what `defer` makes of each is run beside it.

    python -m tests.fuzz.grouped --programs 2000
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

import numpy as np  # noqa: E402
from support.rewritten.agreement import Options, wrong_numbers, wrong_reals  # noqa: E402
from support.rewritten.oracle import run  # noqa: E402

import autosched  # noqa: E402
from autosched import ir  # noqa: E402
from autosched.ir.program import Program  # noqa: E402
from autosched.ir.rewrites.tiles.in_turn import in_turn  # noqa: E402
from autosched.ir.rewrites.verdict import RewriteVerdict  # noqa: E402

NARROW = ("s8", "u8", "s4", "u4", "s16")
KINDS = ("random", "large", "infinite", "nan", "zero", "denormal", "opposite")
"""What some of the floats are."""


def grouped_text(seed: int, shape: tuple[int, int] | None = None) -> str:
    """A program: `m` rows, `n` columns, `k` terms in groups of `g`, which may not divide `k`. `shape`: rows and columns
    of a caller's choice."""
    r = Random(seed)
    m, n, g = r.choice([1, 2, 3]), r.choice([2, 5, 16]), r.choice([2, 3, 4, 8])
    m, n = shape or (m, n)
    k = g * r.choice([1, 2, 3]) - r.choice([0, 0, 0, 1])
    k, kg = max(k, 2), -(-max(k, 2) // g)
    w = r.choice(NARROW)
    weight = r.choice(["f32(W[p, j])", f"(f32(W[p, j]) - f32(Z[p // {g}, j]))", "(f32(W[p, j]) - 8.0)", "V[p, j]",
                       f"(f32(W[p, j]) if p < {k - 1} else 0.0)",
                       *["f32(u4(P[p // 2, j] >> u8(p % 2 * 4)))"] * (g % 2 == 0)])
    scale = r.choice([f"S[p // {g}, j]", f"R[i, p // {g}]", f"(S[p // {g}, j] * R[i, p // {g}])", f"H[p // {g}]",
                      f"(S[p // {g}, j] + H[p // {g}])", f"(c * S[p // {g}, j])",
                      f"(S[p // {g}, j] * (H[p // {g}] / H[p // {g}]))", f"rsqrt(abs(H[p // {g}]))",
                      f"(S[p // {g}, j] * (1.0 / H[p // {g}]))", f"exp(H[p // {g}])"])  # fmt: skip
    x, over = "X[i, p]", r.choice([False, False, True])
    term = r.choice([f"{x} * ({weight} * {scale})", f"{x} * {weight} * {scale}", f"({scale} * {x}) * {weight}"])
    if over:
        term = f"{x} * {weight} / {scale}"
    guard = r.choice(["", "", "if G[i, p] != 0:", "if p <= i + 2:"])
    start = r.choice(["0", "0", "B[j]"])
    op = r.choice(["+=", "+=", "-="])
    used = {t for t in ("W", "V", "P", "Z", "S", "R", "H", "G", "B") if f"{t}[" in f"{term} {guard} {start}"}
    shapes = {"W": f"{w}[{k}, {n}]", "V": f"f32[{k}, {n}]", "Z": f"{w}[{kg}, {n}]", "S": f"f32[{kg}, {n}]",
              "P": f"u8[{-(-k // 2)}, {n}]", "R": f"f32[{m}, {kg}]", "H": f"f32[{kg}]", "G": f"u8[{m}, {k}]",
              "B": f"f32[{n}]"}
    inputs = [f"{t}: {s}" for t, s in shapes.items() if t in used]
    tensors = [f"X: f32[{m}, {k}]", *inputs, f"Y: f32[{m}, {n}]", "c: f32"]
    update = f"Y[i, j] {op} {term}"
    body = f"            {guard}\n                {update}" if guard else f"            {update}"
    return (
        f"def f({', '.join(tensors)}):\n    for i, j in grid({m}, {n}):\n        Y[i, j] = {start}\n"
        f"        for p in range({k}):\n{body}\n"
    )


def grouped_data(before: Program, seed: int, kind: str) -> dict[str, np.ndarray]:
    """Inputs; a few elements of one float tensor are of a kind that hurts."""
    rng = np.random.default_rng(seed)
    data: dict[str, np.ndarray] = {}
    floats = [n for n in before.inputs if before.tensors[n].dtype.is_float]
    hurt = floats[seed % len(floats)]
    for name in before.inputs:
        tensor = before.tensors[name]
        if not tensor.dtype.is_float:
            low, high = (0, 1) if name == "G" else tensor.dtype.limits
            data[name] = rng.integers(low, high + 1, tensor.extents).astype(tensor.dtype.numpy)
            continue
        drawn = rng.normal(size=tensor.extents) + (0.0 if name in ("X", "V", "B") else 2.0)
        if name == hurt:
            chosen = rng.random(drawn.shape) < 0.2
            with np.errstate(all="ignore"):
                drawn = np.where(chosen, _hurting(kind, drawn), drawn)
        data[name] = drawn.astype(np.float32)
    return data


def _hurting(kind: str, drawn: np.ndarray) -> np.ndarray:
    sign = np.sign(drawn)
    return {"random": drawn, "large": sign * 2e38, "infinite": sign * np.inf, "nan": drawn * np.nan, "zero": drawn * 0,
            "denormal": drawn * 1e-42, "opposite": np.where(drawn > 0, 3e38, -np.inf)}[kind]  # fmt: skip


def wrong_programs(first: int, count: int) -> Iterator[tuple[int, str]]:
    """Numbers of programs that are rewritten wrongly, with what is wrong."""
    for seed in range(first, first + count):
        before = ir.parse(grouped_text(seed))
        for verdict in autosched.rewrites(before):
            if verdict.name != "defer" or verdict.numerics != "rescaled":
                continue
            for kind in KINDS:
                data = grouped_data(before, seed, kind)
                for text in (
                    wrong_numbers(before, verdict, Options(1, 1, None), data, 1.0),
                    wrong_reals(before, verdict, data, 1.0) if kind == "random" else "",
                ):
                    if text:
                        yield seed, f"{kind}: {text}"
            if text := wrong_in_turn(verdict, grouped_data(before, seed, KINDS[seed % len(KINDS)]), Random(seed)):
                yield seed, text


def wrong_in_turn(verdict: RewriteVerdict, data: dict[str, np.ndarray], r: Random) -> str:
    """What is wrong where sums of groups are added up as they are finished, in tiles of any size; each bit counts."""
    after = verdict.after
    assert after is not None
    if "Y_group" not in after.tensors:  # a factor of the whole sum has left it
        return ""
    m, n = after.tensors["Y"].extents
    tile = [r.choice([t for t in range(1, size + 1) if size % t == 0]) for size in (m, n)]
    turn = in_turn(after, "Y_group", tile)
    if turn is None or "Y_group" in turn.tensors:
        return f"no tiles of {tile}"
    if ir.parse(str(turn)) != turn:
        return f"another program when parsed: {turn}"
    want, got = (run(p, data, {"c": 1.5})["Y"] for p in (after, turn))
    same = np.array_equal(want, got, equal_nan=True) and np.array_equal(np.signbit(want), np.signbit(got))
    return "" if same else f"tiles of {tile}: {got}, not {want}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--programs", type=int, default=200)
    chosen = parser.parse_args()
    for seed, text in wrong_programs(chosen.first, chosen.programs):
        print(seed, text, grouped_text(seed), sep="\n")


if __name__ == "__main__":
    main()
