"""Pairs of which the instruction's operand selects elements of another one by low bits, as 2:4 sparsity does. Programs
address the same element by data of a known range; some are changed."""

from __future__ import annotations

from random import Random

from .pairs import Pair


def selecting(rng: Random) -> Pair:
    """A pair; one program in three is changed."""
    floats = rng.random() < 0.5
    narrow, wide = rng.choice((("f16", "f32"), ("f32", "f32")) if floats else (("s8", "s32"), ("u8", "s32")))
    count = rng.choice((2, 4, 4))
    kept = rng.choice((1, 2))
    tile, size = {}, {}
    for x in ("i", "j"):
        tile[x], size[x] = rng.randint(1, 4), rng.randint(1, 5)
    groups, mine = rng.randint(1, 2), rng.randint(1, 4)
    tile["k"], size["k"] = groups * kept, mine * kept
    group = f"k // {kept}" if kept > 1 else "k"
    semantics = (
        f"def up(a: {narrow}[{tile['i']}, {tile['k']}], e: u8[{tile['i']}, {tile['k']}], "
        f"b: {narrow}[{groups}, {count}, {tile['j']}], c: {wide}[{tile['i']}, {tile['j']}]):\n"
        f"    for i, j, k in grid({tile['i']}, {tile['j']}, {tile['k']}):\n"
        f"        c[i, j] += {wide}(a[i, k]) * {wide}(b[{group}, s32(e[i, k] & {count - 1}), j])\n"
    )
    changed = rng.choice(("no", "no", "no", "no", "group", "mask", "element"))
    flat = rng.random() < 0.5
    mask = count - 1 if changed != "mask" or count == 2 else 1
    assumed = changed != "mask" and rng.random() < 0.5
    number = "s32(E[i, k])" if assumed else f"s32(E[i, k] & {mask})"
    if changed == "group":
        group = "k"
    rows = max(size["k"], mine) if changed == "group" else mine
    subscript = f"s32({count} * ({group})) + {number}, j" if flat else f"{group}, {number}, j"
    element = f"B[{subscript}]"
    held = f"[{rows * count}, {size['j']}]" if flat else f"[{rows}, {count}, {size['j']}]"
    other = "A[i, k]" if changed == "element" else element
    program = (
        f"def f(A: {narrow}[{size['i']}, {size['k']}], E: u8[{size['i']}, {size['k']}], B: {narrow}{held}, "
        f"C: {wide}[{size['i']}, {size['j']}]):\n"
        + (f"    assume(E <= {count - 1})\n" if assumed else "")
        + f"    for i, j, k in grid({size['i']}, {size['j']}, {size['k']}):\n"
        + f"        C[i, j] += {wide}({'A[i, k]' if changed != 'element' else element}) * {wide}({other})\n"
    )
    numerics = "{accumulate: unordered}" if floats else "{accumulate: exact}"
    return Pair(semantics, numerics, program, "reassociated", along=1)
