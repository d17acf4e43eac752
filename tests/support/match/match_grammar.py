"""Random instructions, programs at random, and programs made to fit an instruction; all from one `random.Random`, so
that hypothesis can shrink them and a seed repeats them.

`fitting` makes a program by construction: each axis of the instruction gets program axes (fused, imperfect, reversed,
split into div and mod), other axes are put outside, dimensions are permuted, flattened or strided. It must match.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from random import Random

TERMS = (
    # of operands a, b (and their types), into the accumulator's type
    ("{t}({a}) * {t}({b})", 6), ("{t}({a}) + {t}({b})", 1), ("abs({t}({a}) - {t}({b}))", 1),
    ("{t}({t}({a}) * {t}({b}))", 1), ("{t}({a}) * {t}({b}) * {t}({b})", 1), ("{t}({a}) - {t}({b})", 1),
    ("{t}(sat_s8(s16({a}) + s16({b})))", 1), ("{t}(s16({a}) * s16({b}))", 1), ("{t}({a})", 1),
    ("{t}(s8(s16({a}) * s16({b})))", 1), ("max({t}({a}), {t}({b}))", 1), ("{t}(u8({a}) & u8({b}))", 1),
    ("{t}(popcount(u8({a}) ^ u8({b})))", 1),
)  # fmt: skip
NARROW = ("u8", "s8", "u4", "s4", "s16")


@dataclass(frozen=True)
class Axes:
    """Axes with extents, and operands' subscripts as lists of axis names (`x+y` for a window)."""

    spatial: dict[str, int]
    reduction: dict[str, int]
    index: dict[str, tuple[str, ...]]
    dtype: dict[str, str]
    term: str
    combine: str
    accumulator: str

    @property
    def extents(self) -> dict[str, int]:
        return self.spatial | self.reduction


def pick(rng: Random, weighted: tuple[tuple[str, int], ...]) -> str:
    return rng.choice([t for t, n in weighted for _ in range(n)])


def instruction(rng: Random, windows: bool = True) -> Axes:
    """A small instruction: one or two spatial axes, at most two reductions."""
    spatial = {x: rng.randint(2, 4) for x in "ij"[: rng.randint(1, 2)]}
    reduction = {x: rng.randint(2, 4) for x in "kl"[: rng.choice((0, 1, 1, 1, 2))]}
    accumulator = rng.choice(("s32",) * 6 + ("s16", "u32", "f32"))
    narrow = ("f16",) if accumulator == "f32" else NARROW
    term = pick(rng, TERMS[:6] if accumulator == "f32" else TERMS)
    names = ["a", "b"] if "{b}" in term else ["a"]
    every = list(spatial | reduction)
    index: dict[str, tuple[str, ...]] = {}
    for name in names:
        chosen = rng.sample(every, rng.randint(1, len(every)))
        if windows and len(chosen) > 1 and rng.random() < 0.2:
            chosen = [f"{chosen[0]}+{chosen[1]}", *chosen[2:]]
        index[name] = tuple(chosen)
    for x in reduction:  # what no operand moves with could not be padded
        if not any(x in part.split("+") for parts in index.values() for part in parts):
            name = rng.choice(names)
            index[name] = (*index[name], x)
    index["c"] = tuple(rng.sample(list(spatial), len(spatial)))
    dtype = {n: rng.choice(narrow) for n in names} | {"c": accumulator}
    combine = rng.choice(("+=",) * 8 + ("-=", "max", "min", "sat"))
    if combine == "sat" and (accumulator not in ("s32", "s16") or term != TERMS[0][0] or reduction):
        combine = "+="
    return Axes(spatial, reduction, index, dtype, term, combine, accumulator)


def statement(out: str, combine: str, term: str, t: str) -> str:
    match combine:
        case "max" | "min":
            return f"{out} = {combine}({out}, {term})"
        case "sat":
            wide = term.replace(f"{t}(", "s64(")
            return f"{out} = sat_{t}(s64({out}) + {wide})"
    return f"{out} {combine} {term}"


def text_of(a: Axes) -> str:
    """The instruction's semantics."""

    def extent(part: str) -> int:
        sizes = [a.extents[x] for x in part.split("+")]
        return sum(sizes) - len(sizes) + 1

    operands = ", ".join(
        f"{n}: {a.dtype[n]}[{', '.join(str(extent(p)) for p in parts)}]" for n, parts in a.index.items()
    )
    element = {n: f"{n}[{', '.join(parts)}]" for n, parts in a.index.items()}
    lines = [f"def m({operands}):"]
    for depth, (x, n) in enumerate(a.extents.items(), 1):
        lines.append(f"{' ' * depth}for {x} in range({n}):")
    term = a.term.format(t=a.accumulator, **element)
    lines.append(" " * (len(a.extents) + 1) + statement(element["c"], a.combine, term, a.accumulator))
    return "\n".join(lines)


@dataclass(frozen=True)
class Fitted:
    """`axes`: instruction axis to the program axes that were put on it; `text` is the program."""

    text: str
    axes: dict[str, tuple[str, ...]]


def fitting(rng: Random, a: Axes) -> Fitted:
    """A program that the instruction computes, by construction."""
    letters = iter("pqrstuvwxyz")
    extents: dict[str, int] = {}
    placed: dict[str, tuple[str, ...]] = {}
    windowed = {x for parts in a.index.values() for p in parts if "+" in p for x in p.split("+")}
    for x, n in a.extents.items():
        many = 1 if x in windowed or rng.random() < 0.6 else rng.randint(1, 2)
        on = []
        for _ in range(many):
            y = next(letters)
            extents[y] = rng.choice((n, 2 * n, n + 1, n - 1, 2, 3, 5)) if x not in windowed else n
            on.append(y)
        if prod(extents[y] for y in on) == 1:
            extents[on[0]] = 2
        placed[x] = tuple(on)
    outside: dict[str, set[str]] = {}
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        y = next(letters)
        extents[y] = rng.randint(1, 3)
        moved = {n for n in a.index if rng.random() < 0.6}
        outside[y] = moved
    reverse = {y for y in extents if rng.random() < 0.15}
    tensors, element = [], {}
    for name, parts in a.index.items():
        dims: list[tuple[str, int]] = []  # subscript and its extent
        for part in parts:
            on = [y for x in part.split("+") for y in placed[x]]
            if "+" in part:
                dims.append((" + ".join(on), sum(extents[y] for y in on) - len(on) + 1))
                continue
            own = [(_turned(y, extents[y], name != "c" and y in reverse), extents[y]) for y in on]
            if len(own) > 1 and rng.random() < 0.4:
                flat = f"({own[0][0]}) * {own[1][1]} + {own[1][0]}"
                own = [(flat, own[0][1] * own[1][1])]
            dims += own
        dims += [(y, extents[y]) for y, moved in outside.items() if name in moved]
        if name != "c" and dims and rng.random() < 0.2:
            s, n = dims.pop()
            step, shift = rng.randint(1, 2), rng.randint(0, 2)
            dims.append((f"({s}) * {step} + {shift}", (n - 1) * step + shift + 1))
        rng.shuffle(dims)
        if rng.random() < 0.2:
            dims.insert(0, ("0", 1))
        tensor = name.upper()
        tensors.append(f"{tensor}: {a.dtype[name]}[{', '.join(str(n) for _, n in dims)}]")
        element[name] = f"{tensor}[{', '.join(s for s, _ in dims)}]"
    rng.shuffle(tensors)
    order = list(extents)
    rng.shuffle(order)
    lines = [f"def f({', '.join(tensors)}):"]
    for depth, y in enumerate(order, 1):
        lines.append(f"{' ' * depth}for {y} in range({extents[y]}):")
    term = respelled(rng, a).format(t=a.accumulator, **element)
    lines.append(" " * (len(order) + 1) + statement(element["c"], a.combine, term, a.accumulator))
    return Fitted("\n".join(lines), placed)


def _turned(y: str, extent: int, turned: bool) -> str:
    return f"{extent - 1} - {y}" if turned else y


def respelled(rng: Random, a: Axes) -> str:
    """The term in another spelling of the same value."""
    choices = [a.term]
    if a.term == "{t}({a}) * {t}({b})":
        choices += ["{t}({b}) * {t}({a})", "-(-{t}({a}) * {t}({b}))"]
        if a.accumulator == "s32":
            choices += ["s32(s64({a}) * s64({b}))"]
    if a.term == "{t}({a}) + {t}({b})":
        choices += ["{t}({b}) + {t}({a})", "{t}({b}) - (-{t}({a}))"]
    if a.term == "max({t}({a}), {t}({b}))":
        choices += ["({t}({a}) if {t}({a}) > {t}({b}) else {t}({b}))"] if a.accumulator != "f32" else []
    return rng.choice(choices)


def mutated(rng: Random, a: Axes) -> Axes:
    """The same program with one thing changed: operator, cast, its place, signedness, combination."""
    t = a.term
    changes = [replace(a, combine="-=" if a.combine == "+=" else "+=")]
    for old, new in ((" * ", " + "), (" + ", " - "), ("abs(", "("), ("max(", "min("), (" & ", " | "), ("sat_s8", "s8")):
        if old in t:
            changes.append(replace(a, term=t.replace(old, new, 1)))
    if t == TERMS[0][0] and a.dtype["a"] == a.dtype["b"] and a.accumulator != "f32":
        changes.append(replace(a, term="{t}({a} * {b})"))
    for n in a.index:
        swap = {"u8": "s8", "s8": "u8", "u4": "s4", "s4": "u4"}
        if a.dtype[n] in swap and n != "c":
            changes.append(replace(a, dtype=a.dtype | {n: swap[a.dtype[n]]}))
    return rng.choice(changes)
