"""Pairs of which groups of consecutive terms have scales (OCP MX's e8m0): the instruction's in tiles of its own, the
program's over any sizes, in one loop over the terms or in two. Instructions of e4m3 scales do not look at signs
(nvfp4); programs rule them out, or do not. Some programs are changed."""

from __future__ import annotations

from random import Random

from .pairs import Pair

CHANGES = ("no", "no", "no", "no", "group", "row", "type", "quotient")


def scaled(rng: Random) -> Pair:
    """A pair; half of the programs are changed."""
    narrow = rng.choice(("e4m3", "e5m2", "e2m1", "f16", "f32"))
    size = rng.choice((2, 2, 3, 4))
    tile, whole = ({"i": rng.randint(1, 3), "j": rng.randint(1, 3), "g": rng.randint(1, 2)} for _ in "ab")
    whole = {x: n + rng.randint(0, 3) for x, n in whole.items()}
    both, acc = rng.random() < 0.6, "f32"
    changed = rng.choice(CHANGES)
    sign = rng.choice(("scale", "scale", "assumed", "magnitude", "open"))
    scale = "e8m0" if sign == "scale" else "e4m3"
    own = "e5m2" if changed == "type" else scale
    assumed = [f"    assume(0 <= {n})" for n in ("S", *("T" * both))] if sign == "assumed" else []
    apart = rng.random() < 0.5

    flat = tile["g"] == 1 and rng.random() < 0.5
    """Whether the instruction has one scale for all that it sums up: an element for each row."""

    def term(names: str, at: dict[str, str], of: str = "*") -> str:
        a, sa, b, sb = names
        right = f"f32({b}[{at['k']}, {at['j']}])"
        bare = sign == "scale" or (a == "A" and sign != "magnitude")
        one, two = f"f32({sa}[{at['r']}, {at['g']}])", f"f32({sb}[{at['h']}, {at['j']}])"
        if flat and a == "a":
            one, two = f"f32({sa}[{at['r']}])", f"f32({sb}[{at['j']}])"
        one, two = (one, two) if bare else (f"abs({one})", f"abs({two})")
        right = f"({right} * {two})" if both else right
        return f"(f32({a}[{at['i']}, {at['k']}]) {of} {one}) * {right}"

    def tensors(names: str, sizes: dict[str, int], mine: str) -> str:
        a, sa, b, sb = names
        m, n, g = sizes["i"], sizes["j"], sizes["g"]
        one = flat and names.islower()
        rows = m if names.islower() or changed != "row" else max(m, n)
        left, right = (f"{rows}", f"{n}") if one else (f"{rows}, {g}", f"{g}, {n}")
        groups = f"{sb}: {scale}[{right}], " if both else ""
        held = f"{a}: {narrow}[{m}, {g * size}], {sa}: {mine}[{left}], {b}: {narrow}[{g * size}, {n}], {groups}"
        return f"{held}{'c' if names.islower() else 'C'}: {acc}[{m}, {n}]"

    at = {"i": "i", "j": "j", "k": "k", "g": f"k // {size}", "h": f"k // {size}", "r": "i"}
    semantics = (
        f"def up({tensors('asbt', tile, scale)}):\n"
        f"    for i, j, k in grid({tile['i']}, {tile['j']}, {tile['g'] * size}):\n"
        f"        c[i, j] += {term('asbt', at)}\n"
    )
    loops = f"k in range({whole['g'] * size})"
    if apart:
        at |= {"k": f"{size} * g + q", "g": "g", "h": "g"}
        loops = f"g, q in grid({whole['g']}, {size})"
    if changed == "group":
        at["g"] = "0" if apart else f"k // {size + 1}"
    if changed == "row":
        at["r"] = "j"
    program = (
        f"def f({tensors('ASBT', whole, own)}):\n" + "".join(f"{line}\n" for line in assumed) +
        f"    for i, j in grid({whole['i']}, {whole['j']}):\n"
        f"        C[i, j] = 0\n"
        f"        for {loops}:\n"
        f"            C[i, j] += {term('ASBT', at, '/' if changed == 'quotient' else '*')}\n"
    )
    return Pair(semantics, "{accumulate: unordered}", program, "reassociated")
