"""Programs with slices that data choose for blocks of an axis, and the plans of these."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.planner.plan_program import float_policy_of, member_planner
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.variants.chosen_slices import chosen_programs

PAGES = """
def pages(Q: f32[n, d], K: f32[pool, page, d], T: s32[pages], S: f32[n, l], *, n=9, d=8, pool=7, page=16, pages=3):
    assume(0 <= T <= pool - 1)
    l = pages * page
    for i, j in grid(n, l):
        S[i, j] = 0
        for p in range(d):
            S[i, j] += Q[i, p] * K[T[j // page], j % page, p]
"""
VALUES = """
def values(P: f32[n, l], V: f32[pool, page, d], T: s32[pages], O: f32[n, d], *, n=6, d=20, pool=5, page=8, pages=3):
    assume(0 <= T <= pool - 1)
    l = pages * page
    for i, e in grid(n, d):
        O[i, e] = 1
        for j in range(l):
            O[i, e] += P[i, j] * V[T[j // page], j % page, e]
"""
SPARSE = """
def sparse(W: const[f32[rows, kept, m, k]], C: s32[rows, kept], X: f32[columns, k, n], Y: f32[rows, m, n],
           *, rows=3, kept=2, columns=5, m=8, k=4, n=20):
    assume(0 <= C <= columns - 1)
    for b, i, j in grid(rows, m, n):
        Y[b, i, j] = 0
        for s, p in grid(kept, k):
            Y[b, i, j] += W[b, s, i, p] * X[C[b, s], p, j]
"""
TWICE = """
def twice(X: f32[m, k], W: const[f32[w, k, n]], E: s32[g], F: s32[blocks], Y: f32[m, n],
          *, m=24, k=5, n=19, w=4, g=3, blocks=4):
    assume(0 <= E <= w - 2)
    assume(0 <= F <= g - 1)
    for j, i in grid(n, m):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += X[i, p] * W[E[F[i // 6]] + 1, p, j]
"""
BYTES = """
def small(X: u8[m, k], W: const[s8[w, k, n]], E: s32[blocks], Y: s32[m, n], *, m=16, k=12, n=18, w=3, blocks=2):
    assume(0 <= E <= w - 1)
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += s32(X[i, p]) * s32(W[E[i // 8], p, j])
"""
TWO = """
def two(X: f32[a, m, k], W: f32[w, k, n], E: s32[blocks], F: s32[blocks], Y: f32[blocks, m, n],
        *, m=6, k=5, n=17, w=3, a=4, blocks=4):
    assume(0 <= E <= a - 1)
    assume(0 <= F <= w - 1)
    for b, i, j in grid(blocks, m, n):
        Y[b, i, j] = 0
        for p in range(k):
            Y[b, i, j] += X[E[b], i, p] * W[F[b], p, j]
"""
LENGTHS = """
def lengths(X: f32[b, m, k], W: const[f32[k, n]], L: s32[b], R: u8[b], Y: f32[b, m, n], *, b=3, m=9, k=8, n=18):
    assume(0 <= L <= k)
    for x, i, j in grid(b, m, n):
        Y[x, i, j] = 2
        for p in range(k):
            if s32(p) < L[x] and u8(i) >= R[x]:
                Y[x, i, j] += X[x, i, p] * W[p, j]
"""
CHOSEN: dict[str, Program] = {
    "experts": workload("matmul_experts", m=24, n=20, k=12, experts=3, block=8),
    "not const": parse(TWO.lstrip(), filename="f.py"),
    "pages": parse(PAGES.lstrip(), filename="f.py"),
    "values": parse(VALUES.lstrip(), filename="f.py"),
    "sparse": parse(SPARSE.lstrip(), filename="f.py"),
    "twice": parse(TWICE.lstrip(), filename="f.py"),
    "masked": workload("matmul_experts", rows="masked", m=12, n=20, k=8, experts=4),
    "lengths": parse(LENGTHS.lstrip(), filename="f.py"),
    "bytes": parse(BYTES.lstrip(), filename="f.py"),
}


def random_choice(seed: int) -> str:
    """A product of two matrices, of which one or both are slices that data choose for blocks of rows, of columns or of
    the sum; ragged, shifted, behind a second choice, within bounds that data choose."""
    rng = random.Random(seed)
    size = {a: rng.choice((4, 6, 8)) for a in "ijp"}
    count = {a: rng.randint(1, 4) for a in "ijp"}
    slices = {"X": rng.randint(1, 4), "W": rng.randint(1, 4)}
    extents = {a: size[a] * count[a] + rng.choice((0, 0, 0, 1)) for a in "ijp"}
    blocks = {a: -(-extents[a] // size[a]) for a in "ijp"}
    params, assumed = [], []
    chosen = {"X": rng.choice(("", "i", "p", "ip")), "W": rng.choice(("i", "j", "p", "ij", "jp"))}
    at = {"X": ["i", "p"], "W": ["p", "j"]}
    shape = {"X": [extents["i"], extents["p"]], "W": [extents["p"], extents["j"]]}
    for name, axes in chosen.items():
        if not axes:
            continue
        paged = rng.choice([a for a in axes if a in at[name]] or [""]) if rng.random() < 0.5 else ""
        table = ", ".join(f"{a} // {size[a]}" for a in axes)
        dims = ", ".join(str(blocks[a]) for a in axes)
        more = rng.choice((0, 0, 1))
        read = f"E{name}[{table}]" + (" + 1" if more else "")
        if rng.random() < 0.3:
            read = f"E{name}[F{name}[{table}]]" + (" + 1" if more else "")
            params += [f"F{name}: s32[{dims}]", f"E{name}: s32[3]"]
            assumed.append(f"assume(0 <= F{name} <= 2)")
        else:
            params.append(f"E{name}: s32[{dims}]")
        assumed.append(f"assume(0 <= E{name} <= {slices[name] - 1})")
        if paged:
            d = at[name].index(paged)
            at[name][d], shape[name][d] = f"{paged} % {size[paged]}", size[paged]
        at[name].insert(0, read)
        shape[name].insert(0, slices[name] + more)
    guards = []
    for axis in rng.sample("ijp", rng.choice((0, 0, 1, 1, 2))):
        along = rng.choice([a for a in "ijp" if a != axis] or ["i"])
        params.append(f"L{axis}: s32[{blocks[along]}]")
        assumed.append(f"assume(-1 <= L{axis} <= {extents[axis] + 1})")
        at_bound, whole = f"L{axis}[{along} // {size[along]}]", f"s32({axis})"
        guards.append(rng.choice((f"{whole} < {at_bound}", f"{at_bound} > {whole}", f"{whole} >= {at_bound}",
                                  f"{at_bound} <= {whole}", f"{whole} <= {at_bound}")))  # fmt: skip
    if rng.random() < 0.2:
        guards.append("j <= i + 2")
    const = rng.choice(("", "const"))
    weights = f"f32[{', '.join(map(str, shape['W']))}]"
    loops = rng.choice(("i, j", "j, i"))
    text = [
        f"def f(X: f32[{', '.join(map(str, shape['X']))}], W: {f'const[{weights}]' if const else weights},",
        f"      {', '.join(params)}, Y: f32[{extents['i']}, {extents['j']}]):",
        *(f"    {line}" for line in assumed),
        f"    for {loops} in grid({', '.join(str(extents[a]) for a in loops.split(', '))}):",
        "        Y[i, j] = 0" if rng.random() < 0.8 else "",
        f"        for p in range({extents['p']}):",
        f"            if {' and '.join(guards)}:" if guards else "",
        f"            {'    ' if guards else ''}Y[i, j] += X[{', '.join(at['X'])}] * W[{', '.join(at['W'])}]",
    ]
    return "\n".join(line for line in text if line) + "\n"


def chosen_plans(program: Program, target: Target, threads: int = 1) -> Iterator[Plan]:
    """Plans of the program with loops around slices that data choose, one for each way. Bodies are on instructions
    where one fits, also where vectors would be faster at such sizes."""
    catalogue = Catalogue.builtin()
    intrinsics = usable(catalogue, target, "cpu", ())
    members = member_planner(target, catalogue, intrinsics, "rescaled")

    def on_instructions(body: Program, prefix: str) -> Sequence[Plan]:
        return sorted(members(body, prefix), key=lambda plan: not plan.tensor_parts)

    policy = float_policy_of(program, target, catalogue, "rescaled")
    for variant in chosen_programs(program, intrinsics, "rescaled"):
        plans = make_plans(variant.program, target, {}, threads, policy, on_instructions, "", variant.loops)
        plan = next((p for p in plans if any(isinstance(q, TileLoopsPart) for q in p.parts)), None)
        if plan is not None:
            yield variant.named(plan)
