"""Pairs of which the instruction names elements of its operands one by one (`a[i, k, 0]`), in terms of either sign, and
may have several results. Programs hold the same elements side by side or in tensors of their own; some are changed."""

from __future__ import annotations

from itertools import product
from random import Random

from autosched.ir.program import Program

from .pairs import Pair
from .plain import runner

Terms = list[tuple[str, str]]
"""Of a sum: signs and texts with {a0}, {b1} … in the places of elements."""
INTEGER = ("{t}({x}) * {t}({y})", "{t}({x}) * {t}({y})", "abs({t}({x}) - {t}({y}))", "max({t}({x}), {t}({y}))")
FLOAT = ("{t}({x}) * {t}({y})", "{t}({x}) * {t}({y})", "abs({t}({x}) - {t}({y}))", "{t}({x}) / {t}({y})")


def in_parts(rng: Random) -> Pair:
    """A pair; the program is the instruction's statement on more points, changed in one of three."""
    floats = rng.random() < 0.5
    types = (("f16", "f32"), ("bf16", "f32"), ("f32", "f32")) if floats else (("s8", "s32"), ("s16", "s32"))
    narrow, wide = rng.choice(types)
    kinds = rng.choice((("i", "j", "k"), ("i", "k"), ("i",), ("i", "j")))
    tile = {x: rng.randint(2, 4) for x in kinds}
    size = {x: rng.randint(1, 6) for x in kinds}
    own = {"a": [x for x in ("i", "k") if x in kinds], "b": [x for x in kinds if x != "i"] or ["i"]}
    count = rng.choice((2, 2, 2, 3))
    shape = rng.choice(FLOAT if floats else INTEGER)
    terms = _terms(rng, shape, wide, count)
    others = _terms(rng, shape, wide, count)
    results = rng.choice((1, 1, 2))
    apart = rng.random() < 0.5  # the second result is an operand of its own
    targets = ["c"] if results == 1 else ["c", "d"] if apart else ["c[0]", "c[1]"]
    written = [x for x in kinds if x != "k"]
    lines = []
    for target, sums in zip(targets, (terms, others), strict=False):
        index = ", ".join([*written, *([target[2]] if "[" in target else [])])
        lines.append(f"{target[0]}[{index}] += {_text(sums, _inside(own))}")
    extents = {n: [tile[x] for x in axes] + [count] for n, axes in own.items()}
    extents["c"] = [tile[x] for x in written] + ([2] if targets[-1] == "c[1]" else [])
    extents |= {"d": [tile[x] for x in written]} if apart and results == 2 else {}
    semantics = _function("up", extents, narrow, wide, kinds, tile, lines)
    meant = rng.randrange(results)
    result = None if results == 1 else targets[meant] if apart else f"c_{meant}"
    mine = (terms, others)[meant]
    if rng.random() < 1 / 3:
        mine = _changed(rng, mine)
    mine = rng.sample(mine, len(mine))
    if mine[0][0] == "-" and any(sign == "+" for sign, _ in mine):
        mine.sort()
    program = _program(rng, own, size, count, narrow, wide, kinds, written, mine)
    numerics = "{accumulate: unordered}" if floats else "{accumulate: exact}"
    return Pair(semantics, numerics, program, "reassociated", result)


def _terms(rng: Random, shape: str, wide: str, count: int) -> Terms:
    """Each element of a once, with one of b each."""
    exchanged = rng.sample(range(count), count)
    signs = ["+", *rng.choices("+-", k=count - 1)]
    made = [shape.format(t=wide, x=f"{{a{n}}}", y=f"{{b{m}}}") for n, m in enumerate(exchanged)]
    return list(zip(signs, made, strict=True))


def _changed(rng: Random, terms: Terms) -> Terms:
    """With another sign, an element in another's place, or a term left out."""
    found = list(terms)
    n = rng.randrange(len(found))
    sign, text = found[n]
    match rng.choice(("sign", "place", "left out")):
        case "sign":
            found[n] = "-" if sign == "+" else "+", text
        case "place":
            old = text[text.index("{a") : text.index("}") + 1]
            found[n] = sign, text.replace(old, f"{{a{rng.randrange(len(found))}}}")
        case _ if len(found) > 2:
            found.pop(n)
    return found


def _inside(own: dict[str, list[str]]) -> dict[str, str]:
    return {f"{n}{p}": f"{n}[{', '.join([*axes, str(p)])}]" for n, axes in own.items() for p in range(3)}


def _text(terms: Terms, names: dict[str, str]) -> str:
    first, *rest = terms
    return ("" if first[0] == "+" else "-") + first[1].format(**names) + "".join(
        f" {sign} {text.format(**names)}" for sign, text in rest
    )


def _function(
    name: str, extents: dict[str, list[int]], narrow: str, wide: str, kinds: tuple[str, ...], size: dict[str, int],
    lines: list[str],
) -> str:  # fmt: skip
    given = ", ".join(f"{n}: {narrow if n[0] in 'abAB' else wide}{e or [1]}" for n, e in extents.items())
    loops = "".join(f"{'    ' * (d + 1)}for {x} in range({size[x]}):\n" for d, x in enumerate(kinds))
    inside = "    " * (len(kinds) + 1)
    return f"def {name}({given}):\n{loops}" + "".join(f"{inside}{line}\n" for line in lines)


def _program(
    rng: Random, own: dict[str, list[str]], size: dict[str, int], count: int, narrow: str, wide: str,
    kinds: tuple[str, ...], written: list[str], terms: Terms,
) -> str:  # fmt: skip
    extents: dict[str, list[int]] = {}
    names: dict[str, str] = {}
    for n, axes in own.items():
        shape = [size[x] for x in axes]
        apart = rng.random() < 0.5
        for p in range(count):
            tensor = f"{n.upper()}{p}" if apart else n.upper()
            at = [*axes] if apart else [*axes, str(p)]
            extents[tensor] = shape if apart else [*shape, count]
            names[f"{n}{p}"] = f"{tensor}[{', '.join(at)}]"
    text = _text(terms, names)
    used = {t: e for t, e in extents.items() if f"{t}[" in text}
    used["C"] = [size[x] for x in written]
    return _function("f", used, narrow, wide, kinds, size, [f"C[{', '.join(written)}] += {text}"])


def parts_differ(written: Program, made: Program, along: int, rng: Random) -> str | None:
    """Runs an instruction as it is written and on parts of its operands, elements by their numbers; what differs."""
    numbers = {n: _filled(rng, t.dtype.is_float, t.extents) for n, t in written.tensors.items()}
    whole = {n: dict(found) for n, found in numbers.items()}
    runner(written)(whole)
    target = made.stages[0].assign.tensor
    parts = {}
    for name, tensor in made.tensors.items():
        parent, fixed = _of_part(name, written)
        parts[name] = {key: numbers[parent][_whole(key, fixed, along)] for key in product(*map(range, tensor.extents))}
    runner(made)(parts)
    parent, fixed = _of_part(target, written)
    for key, value in parts[target].items():
        wanted = whole[parent][_whole(key, fixed, along)]
        if value != wanted and value == value:
            return f"{target}{list(key)} of the instruction in parts is {value}, of its text {wanted}"
    return None


def _of_part(name: str, written: Program) -> tuple[str, tuple[int, ...]]:
    if name in written.tensors:
        return name, ()
    parent, number = name.rsplit("_", 1)
    return parent, (int(number),)


def _whole(key: tuple[int, ...], fixed: tuple[int, ...], along: int) -> tuple[int, ...]:
    """The subscripts in an operand of an element of its part."""
    place = len(key) if along < 0 else along
    return (*key[:place], *fixed, *key[place:])


def _filled(rng: Random, floats: bool, extents: tuple[int, ...]) -> dict[tuple[int, ...], float | int]:
    draw = (lambda: rng.randint(-8, 8) / 4) if floats else (lambda: rng.randint(-100, 100))
    return {key: draw() for key in product(*map(range, extents))}

