"""Random instructions and programs: most programs are made to fit their instruction, by construction, and are then
guarded, started, chosen from or changed in some way of which the matcher must say whether it still fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

INTEGER_TERMS = (
    ("{t}({a}) * {t}({b})", 8), ("{t}({a}) * {t}({b}) * {t}({d})", 1), ("{t}({a}) + {t}({b})", 1),
    ("abs({t}({a}) - {t}({b}))", 2), ("{t}({a}) - {t}({b})", 1), ("{t}({a})", 1), ("{t}({t}({a}) * {t}({b}))", 1),
    ("({t}({a}) if {a} > 0 else 0)", 1), ("({t}({a}) if {a} > {b} else {t}({b}))", 1), ("max({t}({a}), {t}({b}))", 1),
    ("({t}({a}) if {a} > 0 else 0) * {t}({b})", 1), ("{t}({a}) * {t}({b}) + {t}({a})", 1),
    ("{t}(sat_s8(s16({a}) + s16({b})))", 1), ("max({t}({a}), {t}({b})) - min({t}({a}), {t}({b}))", 1),
    ("{t}(s16({a}) * s16({b}))", 1), ("{t}(popcount(u8({a}) ^ u8({b})))", 1), ("({t}({a}) - 3) * {t}({b})", 1),
    ("max({t}({a}), 0)", 1), ("max({t}({a}) * {t}({b}), 0)", 1), ("{t}(s8(s16({a}) * s16({b})))", 1),
    ("{t}(u8({a}) & u8({b}))", 1),
)  # fmt: skip
FLOAT_TERMS = (
    ("{t}({a}) * {t}({b})", 6), ("exp({t}({a})) * {t}({b})", 3), ("{t}({a}) * rsqrt({t}({b}))", 2),
    ("{t}({a}) * {t}({b}) * {t}({d})", 2), ("exp({t}({a}) - {t}({b}))", 1), ("{t}({a}) + {t}({b})", 1),
    ("exp({t}({a})) * exp({t}({b}))", 1), ("({t}({a}) if {a} > 0 else 0) * {t}({b})", 1),
    ("({t}({a}) if {a} > 0 else 0)", 1), ("max({t}({a}), 0) * {t}({b})", 1), ("abs({t}({a}) - {t}({b}))", 1),
    ("{t}({a}) * ({t}({b}) + {t}({d}))", 1), ("{t}({a}) / {t}({b})", 1), ("{t}({a})", 1),
    ("({t}({a}) - {t}({b})) * ({t}({a}) - {t}({b}))", 1), ("-{t}({a}) * {t}({b})", 1), ("exp({t}({a}))", 1),
)  # fmt: skip
WRITTEN_TERMS = (
    ("{t}(({w}({a}) + {w}({b}) + 1) >> 1)", 3), ("sat_{t}({w}({a}) + {w}({b}))", 3),
    ("sat_{t}({w}({a}) - {w}({b}))", 2), ("max({a}, {b})", 2), ("min({a}, {b})", 1), ("abs({a})", 1),
    ("{t}(({w}({a}) * {w}({b})) >> 4)", 2),
    ("({a} if {a} > {b} else {b})", 1), ("{a}", 1), ("{t}(sat_s8({w}({a}) * {w}({b})))", 1), ("{a} + {b}", 1),
    ("({a} & {b}) | (~{a} & {d})", 1), ("({a} if {p} != 0 else {b})", 1), ("({a} + {b} if {p} > 0 else {d})", 1),
    ("({a} if {d} > 0 else {b})", 1), ("{t}({w}({a}) + {w}({b}) + {w}({d}))", 1), ("-{a}", 1),
)  # fmt: skip
WRITTEN_FLOATS = (
    ("{a} + {b}", 2), ("{a} - {b}", 2), ("{a} * {b}", 2), ("max({a}, {b})", 1), ("min({a}, {b})", 1), ("abs({a})", 1),
    ("-{a}", 1), ("fma({a}, {b}, {d})", 2), ("max(fma({a}, {b}, {d}), 0.0)", 1), ("{a} * {b} + {d}", 1),
    ("{t}({w}({a}) + {w}({b}))", 2), ("{t}({w}({a}) * {w}({b}))", 1), ("{t}({w}({a}) * {w}({b}) + {w}({d}))", 1),
    ("{t}({w}({a}) / {w}({b}))", 1), ("({a} * {b} if {p} != 0 else {d})", 1), ("rsqrt({a})", 1), ("1.0 / {a}", 1),
    ("sigmoid({a})", 1), ("rsqrt({a} * {b})", 1),
)  # fmt: skip
WIDER = {"u8": "u16", "s8": "s16", "u16": "u32", "s16": "s32", "s32": "s64"}
FLOATS = {"f16": "f32", "bf16": "f32", "f32": "f64"}
NARROW = ("u8", "s8", "s8", "u4", "s4", "s16")
Part = tuple[tuple[int, str], ...]
"""One subscript: a sum of axes with factors."""


@dataclass(frozen=True)
class Instruction:
    """Axes with extents, and each operand's subscripts."""

    spatial: dict[str, int]
    reduction: dict[str, int]
    index: dict[str, tuple[Part, ...]]
    dtype: dict[str, str]
    term: str
    combine: str
    written: str = "loop"
    """How its semantics are written: with a loop for k, as a `sum` written out, or as one with a `clamp` to s16."""

    @property
    def extents(self) -> dict[str, int]:
        return self.spatial | self.reduction

    @property
    def accumulator(self) -> str:
        return self.dtype["c"]


@dataclass(frozen=True)
class Pair:
    semantics: str
    numerics: str
    program: str
    level: str
    result: str | None = None
    """Of an instruction with several results: the one that is meant."""
    along: int = -1
    """Of one that names elements one by one: in which dimension."""
    whole: bool = False
    """Whether registers are given, so that no element is an operand of its own."""
    texts: bool = False
    """Whether the instruction has a text, which is the new value of its target."""


def pair(rng: Random) -> Pair:
    made = instruction(rng)
    level = rng.choice(("bitwise", "special", *["reassociated"] * 14))
    floats = made.accumulator.startswith(("f", "b"))
    numerics = rng.choice(("{accumulate: sequential}", "{accumulate: unordered}")) if floats else "{accumulate: exact}"
    found = program(rng, made)
    if numerics == "{accumulate: unordered}" and rng.random() < 0.2:
        numerics = f"{{accumulate: unordered, subnormals: {rng.choice(('flushed', 'results'))}}}"
    return Pair(semantics(made), numerics, found, level)


def chosen(rng: Random) -> Pair:
    """A pair of which an operand is a slice that data choose: for each place of an axis or for blocks of it."""
    made = instruction(rng)
    found = _Program(rng, made)
    found.axes()
    found.elements()
    found.choices()
    found.conditions()
    numerics = "{accumulate: unordered}" if made.accumulator == "f32" else "{accumulate: exact}"
    return Pair(semantics(made), numerics, found.text(), rng.choice(("bitwise", "reassociated", "reassociated")))


def overwriting(rng: Random) -> Pair:
    """A pair of which the instruction writes over its target, and reduces nothing; the program may differ a little."""
    spatial = {x: rng.randint(2, 4) for x in "ij"[: rng.choice((1, 1, 2))]}
    t = rng.choice(("u8", "u8", "s8", "s16", "u16", "s32", "f16", "bf16", "f32"))
    floats = t in FLOATS
    wider = FLOATS if floats else WIDER
    term = _weighted(rng, WRITTEN_FLOATS if floats else WRITTEN_TERMS)
    names, every = [n for n in "abdp" if "{" + n + "}" in term], list(spatial)
    index: dict[str, tuple[Part, ...]] = {n: tuple(((1, x),) for x in every) for n in names}
    for name in names:
        if rng.random() < 0.25:
            index[name] = tuple(((1, x),) for x in rng.sample(every, rng.randint(1, len(every))))
    index["c"] = tuple(((1, x),) for x in rng.sample(every, len(every)))
    dtype, term = dict.fromkeys([*names, "c"], t), term.replace("{w}", wider[t])
    dtype |= {"p": "b1"} if "p" in names else {}
    if rng.random() < 0.15:  # a conversion
        dtype["c"], term = rng.choice([x for x in wider if x != t]), rng.choice(("sat_{t}({a})", "{t}({a})"))
        term = "{t}({a})" if floats else term
        index, names = {n: index.get(n, index["c"]) for n in "ac"}, ["a"]
        dtype = {n: dtype.get(n, t) for n in "ac"}
    made = Instruction(spatial, {}, index, dtype, term, "=")
    asked = made
    if rng.random() < 0.3:
        near = ((" + 1)", ")"), ("sat_", ""), ("max(", "min("), (" + ", " - "), (" > ", " >= "), (">> 1", ">> 2"))
        wide = "{t}({w}({a}) + {w}({b}))".replace("{w}", wider[t])
        near += (("rsqrt(", "sqrt("), ("rsqrt({a}", "1.0 / sqrt(-{a}"), ("sigmoid({a})", "1.0 / (1.0 + exp({a}))"))
        near += (("fma({a}, {b}, {d})", "({a} * {b} + {d})"), ("{a} + {b}", wide))
        found = [made.term.replace(old, new, 1) for old, new in near if old in made.term]
        other = rng.choice([x for x in wider if x != t])
        retyped = replace(made, dtype=made.dtype | {rng.choice([*[n for n in names if n != "p"], "c"]): other})
        choices = [replace(made, term=found_term) for found_term in found] + [retyped, replace(made, combine="+=")]
        asked = rng.choice(choices)
    elif rng.random() < 0.5:  # the same function of reals
        same = (("rsqrt({a})", "1.0 / sqrt({a})"), ("sigmoid({a})", "1.0 / (1.0 + exp(-{a}))"))
        inside = (("rsqrt({a})", "{a} * rsqrt({a} * {a})"), ("sigmoid({a})", "{a} * sigmoid({a} + 1.0)"))
        inside += (("1.0 / {a}", "({a} + 9.0) / ({a} * {a} + 1.0)"), ("rsqrt({a})", "abs({a}) / sqrt({a} * {a} + 1.0)"))
        same = inside[rng.randrange(4) :] + inside if rng.random() < 0.4 else same
        asked = replace(made, term=next((made.term.replace(o, n) for o, n in same if o in made.term), made.term))
    found_program = _Program(rng, asked)
    found_program.axes()
    found_program.elements()
    name = rng.choice([n for n in names if n != "p"])
    if rng.random() < 0.2:  # a number, or a run-time scalar
        del found_program.tensors[name.upper()]
        found_program.element[name] = rng.choice(("0", "1", "7", "100", "g"))
        if found_program.element[name] == "g":
            found_program.tensors["g"] = asked.dtype[name]
    elif rng.random() < 0.25 and dtype["c"] == t:  # in place
        found_program.element[name] = found_program.element["c"]
        del found_program.tensors[name.upper()]
    found_program.conditions()
    numerics = rng.choice(("{}", "{}", "{subnormals: flushed}")) if floats else "{accumulate: exact}"
    if floats and ("/ {a}" in term or "sqrt" in term or "sigmoid" in term) and rng.random() < 0.7:
        numerics = rng.choice(("{relative: 2^-6}", "{absolute: 2^-6}"))
    level = rng.choice(("bitwise", "reassociated", "real") if "2^" in numerics else ("bitwise", "reassociated"))
    return Pair(semantics(made), numerics, found_program.text(), level)


def governed(rng: Random) -> Pair:
    """A pair of which the instruction adds up where a mask or a length says so; the program has none, the same mask on
    other axes perhaps, or its opposite."""
    made = instruction(rng)
    while made.combine != "+=" or made.written != "loop":
        made = instruction(rng)
    every = list(made.extents)
    masked = rng.sample(every, rng.randint(1, len(every))) if rng.random() < 0.8 else []
    counted = rng.choice(every) if rng.random() < 0.4 or not masked else None
    head, *loops, core = semantics(made).splitlines()
    tests, extra = list[str](), list[str]()
    if masked:
        tests.append(f"p[{', '.join(masked)}] {rng.choice(('!= 0', '> 0', '== 1'))}")
        extra.append(f"p: b1[{', '.join(str(made.extents[x]) for x in masked)}]")
    if counted:
        tests.append(rng.choice((f"u32({counted}) < vl[0]", f"vl[0] > u32({counted})")))
        extra.append("vl: u32[1]")
    rng.shuffle(tests)
    indent = core[: len(core) - len(core.lstrip())]
    text = [head.replace("(", f"({', '.join(extra)}, ", 1), *loops, f"{indent}if {' and '.join(tests)}:", f" {core}"]
    found = _Program(rng, made, fits=rng.random() < 0.5)
    found.axes()
    found.elements()
    if not found.fits:
        found.conditions()
    if rng.random() < 0.6:
        axes = [y for x in masked for y in found.placed[x]] if rng.random() < 0.8 else []
        axes = axes or rng.sample(list(found.extents), rng.randint(1, len(found.extents)))
        found.tensors["P"] = f"b1[{', '.join(str(found.extents[y]) for y in axes)}]"
        found.guards.append(f"P[{', '.join(axes)}] {rng.choice(('!= 0', '!= 0', '> 0', '== 0'))}")
    if rng.random() < 0.2:  # that is no mask yet
        axis = rng.choice(list(found.extents))
        found.tensors["Q"] = f"s8[{found.extents[axis]}]"
        found.guards.append(f"Q[{axis}] {rng.choice(('> 3', '!= 0', '<= -100'))}")
    numerics = "{accumulate: unordered}" if made.accumulator == "f32" else "{accumulate: exact}"
    return Pair("\n".join(text), numerics, found.text(), rng.choice(("bitwise", "reassociated", "reassociated")))


def fitting(rng: Random) -> Pair:
    """A program that its instruction computes, by construction; some need padding that no value serves as."""
    made = instruction(rng)
    found = _Program(rng, made, fits=True)
    found.axes()
    found.elements()
    numerics = "{accumulate: unordered}" if made.accumulator == "f32" else "{accumulate: exact}"
    return Pair(semantics(made), numerics, found.text(), "reassociated")


def _weighted(rng: Random, choices: tuple[tuple[str, int], ...]) -> str:
    return rng.choices([c for c, _ in choices], [n for _, n in choices])[0]


def instruction(rng: Random) -> Instruction:
    spatial = {x: rng.randint(2, 4) for x in "ij"[: rng.choice((0, 1, 1, 2, 2))]}
    reduction = {x: rng.randint(2, 4) for x in "kl"[: rng.choice((0, 1, 1, 1, 1, 2))]}
    if not spatial and not reduction:
        spatial = {"i": rng.randint(2, 4)}
    accumulator = rng.choice(("s32",) * 8 + ("s16", "u32", "f32", "f32", "f32", "f32"))
    floats = accumulator == "f32"
    term = _weighted(rng, FLOAT_TERMS if floats else INTEGER_TERMS)
    names = [n for n in "abd" if "{" + n + "}" in term]
    every = list(spatial | reduction)
    index: dict[str, tuple[Part, ...]] = {}
    for name in names:
        chosen = rng.sample(every, rng.randint(1, len(every)))
        parts: list[Part] = [((1, x),) for x in chosen]
        if len(parts) > 1 and rng.random() < 0.35:
            step = rng.choice((1, 1, 1, 2))
            parts = [((step, chosen[0]), (1, chosen[1])), *parts[2:]]
        index[name] = tuple(parts)
    for x in every:  # what no operand moves with could not be padded, or is no axis
        if not any(x == y for parts in index.values() for part in parts for _, y in part) and x in reduction:
            name = rng.choice(names)
            index[name] = (*index[name], ((1, x),))
    index["c"] = tuple(((1, x),) for x in rng.sample(list(spatial), len(spatial)))
    narrow = ("f32", "f32", "f16", "bf16") if floats else NARROW
    dtype = {n: rng.choice(narrow) for n in names} | {"c": accumulator}
    if " > {b}" in term:
        dtype["b"] = dtype["a"]
    combine = rng.choice(("+=",) * 10 + ("-=", "max", "min", "sat"))
    if combine == "sat" and (accumulator not in ("s32", "s16") or term != INTEGER_TERMS[0][0]):
        combine = "+="
    if combine == "+=" and not reduction and rng.random() < 0.1:
        combine = "="
    made = Instruction(spatial, reduction, index, dtype, term, combine)
    plain = all(len(p) == 1 for parts in index.values() for p in parts) and list(reduction) == ["k"]
    if plain and combine == "+=" and accumulator == "s32" and term == INTEGER_TERMS[0][0] and rng.random() < 0.3:
        return replace(made, written=rng.choice(("sum", "clamp")))
    return made


def update(out: str, combine: str, term: str, t: str) -> str:
    match combine:
        case "max" | "min":
            return f"{out} = {combine}({out}, {term})"
        case "sat":
            return f"{out} = sat_{t}(s64({out}) + {term.replace(f'{t}(', 's64(')})"
        case "fma":
            left, right = term.split(" * ")
            return f"{out} = fma({left}, {right}, {out})"
    return f"{out} {combine} {term}"


def semantics(a: Instruction) -> str:
    def extent(part: Part) -> int:
        return sum(step * (a.extents[x] - 1) for step, x in part) + 1

    def shown(part: Part) -> str:
        return " + ".join(x if step == 1 else f"{step} * {x}" for step, x in part)

    if a.written != "loop":
        return _written_out(a)

    operands = ", ".join(
        f"{n}: {a.dtype[n]}[{', '.join(str(extent(p)) for p in ps) or '1'}]" for n, ps in a.index.items()
    )
    element = {n: f"{n}[{', '.join(map(shown, ps)) or '0'}]" for n, ps in a.index.items()}
    lines = [f"def m({operands}):"]
    for depth, (x, n) in enumerate(a.extents.items(), 1):
        lines.append(f"{' ' * depth}for {x} in range({n}):")
    term = a.term.format(t=a.accumulator, **element)
    lines.append(" " * (len(a.extents) + 1) + update(element["c"], a.combine, term, a.accumulator))
    return "\n".join(lines)


def _written_out(a: Instruction) -> str:
    """The sum over k in one expression, with k as constants."""
    operands = ", ".join(
        f"{n}: {a.dtype[n]}[{', '.join(str(a.extents[p[0][1]]) for p in ps) or '1'}]" for n, ps in a.index.items()
    )
    lines = [f"def m({operands}):"]
    for depth, (x, n) in enumerate(a.spatial.items(), 1):
        lines.append(f"{' ' * depth}for {x} in range({n}):")
    if not a.spatial:
        lines.append(" for o in range(1):")
    terms = []
    for k in range(a.reduction["k"]):
        named = {n: [str(k) if p[0][1] == "k" else p[0][1] for p in ps] or ["0"] for n, ps in a.index.items()}
        terms.append(a.term.format(t=a.accumulator, **{n: f"{n}[{', '.join(ps)}]" for n, ps in named.items()}))
    total = " + ".join(terms)
    total = f"s32(sat_s16({total}))" if a.written == "clamp" else total
    target = ", ".join(p[0][1] for p in a.index["c"]) or "0"
    return "\n".join([*lines, " " * (max(1, len(a.spatial)) + 1) + f"c[{target}] += {total}"])


class _Program:
    """A program under way: `extents` of its axes, `lines` of guards, and the text of each element. `fits`: nothing is
    put into it that an instruction may not be able to compute."""

    def __init__(self, rng: Random, made: Instruction, fits: bool = False) -> None:
        self.rng, self.made, self.fits = rng, made, fits
        self.extents: dict[str, int] = {}
        self.placed: dict[str, tuple[str, ...]] = {}
        self.outside: dict[str, frozenset[str]] = {}
        self.tensors: dict[str, str] = {}
        self.element: dict[str, str] = {}
        self.guards: list[str] = []
        self.selects: dict[str, str] = {}
        self.bounds: dict[str, str] = {}
        self.spatial: list[str] = []

    def axes(self) -> None:
        rng, letters = self.rng, iter("pqrstuvwxyz")
        windowed = {x for ps in self.made.index.values() for p in ps if len(p) > 1 for _, x in p}
        for x, n in self.made.extents.items():
            on = []
            for _ in range(1 if x in windowed or rng.random() < 0.7 else 2):
                y = next(letters)
                sizes = (n, n, n, 2 * n, n + 1, n - 1, 2, 3, 5) if x not in windowed else (n, n, n, 2 * n, n + 1)
                sizes = (n,) if self.fits and x in windowed else sizes
                self.extents[y] = rng.choice(sizes)
                on.append(y)
            if all(self.extents[y] == 1 for y in on):
                self.extents[on[0]] = 2
            self.placed[x] = tuple(on)
        names = list(self.made.index)
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            y = next(letters)
            self.extents[y] = rng.randint(1, 3)
            self.outside[y] = frozenset(n for n in names if rng.random() < 0.6)
        self.spatial = [y for x in self.made.spatial for y in self.placed[x]]
        self.spatial += [y for y, moved in self.outside.items() if "c" in moved]

    def elements(self) -> None:
        rng = self.rng
        turned = {y for y in self.extents if rng.random() < 0.1}
        for name, parts in self.made.index.items():
            dims: list[tuple[str, int]] = []  # subscript, and what it counts to
            for part in parts:
                if len(part) > 1:
                    words, last = [], 0
                    for step, x in part:
                        (y,) = self.placed[x]
                        words.append(y if step == 1 else f"{step} * {y}")
                        last += step * (self.extents[y] - 1)
                    dims.append((" + ".join(words), last + 1))
                    continue
                own = [self._turned(y, name != "c" and y in turned) for y in self.placed[part[0][1]]]
                if len(own) > 1 and rng.random() < 0.4:
                    own = [(f"({own[0][0]}) * {own[1][1]} + {own[1][0]}", own[0][1] * own[1][1])]
                dims += own
            dims += [(y, self.extents[y]) for y, moved in self.outside.items() if name in moved]
            if name != "c" and dims and rng.random() < 0.15:
                text, n = dims.pop()
                step, shift = rng.randint(1, 2), rng.randint(0, 2)
                dims.append((f"({text}) * {step} + {shift}", (n - 1) * step + shift + 1))
            if not self.fits and name != "c" and len(dims) > 1 and rng.random() < 0.1:
                (one, m), (two, n) = dims.pop(), dims.pop()  # a window where the instruction has none
                dims.append((f"{one} + {two}", m + n - 1))
            rng.shuffle(dims)
            if not self.fits and name != "c" and dims and rng.random() < 0.2:
                self._padded(name, dims)
            if not dims or rng.random() < 0.1:
                dims.insert(0, ("0", 1))
            self.tensors[name.upper()] = f"{self.made.dtype[name]}[{', '.join(str(n) for _, n in dims)}]"
            self.element[name] = f"{name.upper()}[{', '.join(s for s, _ in dims)}]"

    def choices(self) -> None:
        """Slices of one operand or two, by a table that an axis outside or inside of the instruction moves along."""
        rng = self.rng
        names = [n for n in self.element if n != "c"]
        for name in rng.sample(names, rng.randint(1, min(2, len(names)))):
            y, size, count = rng.choice(list(self.extents)), rng.randint(1, 3), rng.randint(1, 3)
            table, tensor = f"E{name}", name.upper()
            self.tensors[table] = f"s32[{-(-self.extents[y] // size)}]"
            at = f"{table}[{y}]" if size == 1 else f"{table}[{y} // {size}]"
            self.element[name] = self.element[name].replace("[", f"[{at}, ", 1)
            self.tensors[tensor] = self.tensors[tensor].replace("[", f"[{count}, ", 1)

    def _turned(self, y: str, turned: bool) -> tuple[str, int]:
        n = self.extents[y]
        return (f"{n - 1} - {y}" if turned else y), n

    def _padded(self, name: str, dims: list[tuple[str, int]]) -> None:
        """A subscript that leaves its tensor, under a guard or a choice that says so."""
        rng = self.rng
        k = rng.randrange(len(dims))
        text, n = dims[k]
        shift = rng.randint(0, 2)
        left = max(1, n - shift - rng.randint(0, 1))
        dims[k] = f"({text}) - {shift}", left
        inside = f"0 <= ({text}) - {shift} < {left}"
        if rng.random() < 0.5:
            self.selects[name] = inside
        else:
            self.guards.append(inside)

    def conditions(self) -> None:
        rng = self.rng
        for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
            self.guards.append(self._condition())
        ys = list(self.extents)
        if len(ys) > 1 and rng.random() < 0.12:
            y, z = rng.sample(ys, 2)
            if self.extents[y] <= self.extents[z]:
                self.bounds[z] = rng.choice((f"{y} + 1", f"{y}, {self.extents[z]}"))
        if rng.random() < 0.2:
            name = rng.choice([n for n in self.element if n != "c"])
            self.selects.setdefault(name, self._condition(on_data=False))

    def _condition(self, on_data: bool = True) -> str:
        rng = self.rng
        y, z = rng.choice(list(self.extents)), rng.choice(list(self.extents))
        n = rng.randint(0, self.extents[y] + self.extents[z] - 2)
        forms = [
            f"{y} <= {z}", f"{y} + {z} <= {n}", f"{y} + {z} > {n // 2}", f"{y} != {z}", f"({y} + {z}) % 2 == 0",
            f"{y} < {rng.randint(1, self.extents[y])}", f"({y} < {z} or {y} + {z} == {n})", f"2 * {y} >= {z}",
            f"{y} >= {rng.randint(0, self.extents[y] - 1)}", f"{y} == {z}",
        ]  # fmt: skip
        if on_data and rng.random() < 0.25:
            if rng.random() < 0.5:
                self.tensors["M"] = f"s8[{self.extents[y]}, {self.extents[z]}]"
                axes = "y, z"
                axes = f"{y}, {z}" if y != z else f"{y}, 0"
                return f"M[{axes}] > 0"
            name = rng.choice([n for n in self.element if n != "c" and n not in self.selects] or ["c"])
            if name != "c":
                return f"{self.element[name]} > {rng.choice(('0', '1'))}"
        return rng.choice(forms)

    def text(self) -> str:
        rng, made = self.rng, self.made
        t = made.accumulator
        element = dict(self.element)
        for name, condition in self.selects.items():
            element[name] = f"({element[name]} if {condition} else {rng.choice(('0', '0', '0', '0', '1'))})"
        offset = not self.fits and rng.random() < 0.06
        spelled = self._offset(respelled(rng, made)) if offset else respelled(rng, made)
        term = spelled.format(t=t, **{n: e for n, e in element.items() if n != "c"})
        if not self.fits and rng.random() < 0.05:
            term = f"(({term}) if {self._condition()} else 0)"
        combine = made.combine
        if (
            combine == "+="
            and not self.fits
            and made.term == "{t}({a}) * {t}({b})"
            and t == "f32"
            and " if " not in term
            and rng.random() < 0.2
        ):
            combine = "fma" if term.count(" * ") == 1 else combine
        core = update(element["c"], combine, term, t)
        reduced = [y for y in self.extents if y not in self.spatial]
        order = list(self.extents)
        rng.shuffle(order)
        start = self._start() if combine != "=" and not self.fits else None
        if start is not None:
            order = [y for y in order if y in self.spatial] + [y for y in order if y in reduced]
        for y, bound in self.bounds.items():  # its bound names an outer axis
            other = next(z for z in self.extents if z in bound.replace(",", " ").split())
            if order.index(other) > order.index(y):
                order.remove(y)
                order.insert(order.index(other) + 1, y)
        first = next((k for k, y in enumerate(order) if y in reduced), len(order))
        if start is not None and any(y in self.spatial for y in order[first:]):
            start = None
        lines: list[str] = []
        if start is not None and rng.random() < 0.25:
            for depth, y in enumerate(order[:first], 1):
                lines.append(" " * depth + f"for {y}0 in range({self.extents[y]}):")
            lines.append(" " * (first + 1) + self._renamed(f"{element['c']} = {start}", order[:first]))
            start = None
        for depth, y in enumerate(order, 1):
            if depth == first + 1 and start is not None:
                lines.append(" " * depth + f"{element['c']} = {start}")
            lines.append(" " * depth + f"for {y} in range({self.bounds.get(y, self.extents[y])}):")
        if start is not None and first == len(order):
            lines.append(" " * (first + 1) + f"{element['c']} = {start}")
        depth = len(order) + 1
        for guard in self.guards:
            lines.append(" " * depth + f"if {guard}:")
            depth += 1
        lines.append(" " * depth + core)
        tensors = [f"{n}: {d}" for n, d in self.tensors.items()]
        rng.shuffle(tensors)
        assumed = [] if self.fits else self._assumed()
        return "\n".join([f"def f({', '.join(tensors)}):", *assumed, *lines]) + "\n"

    def _offset(self, term: str) -> str:
        """The term with an operand that something is taken from at some of the points, as zero points are."""
        rng, t = self.rng, self.made.accumulator
        name, y = rng.choice([n for n in self.element if n != "c"]), rng.choice(list(self.extents))
        self.tensors["O"] = f"{t}[{self.extents[y]}]"
        taken = f"(O[{y}] if {self._condition(on_data=False)} else {rng.choice(('0', '1', 'O[0]'))})"
        plain = "{t}({" + name + "})"
        return term.replace(plain, f"({plain} - {taken})", 1)

    def _renamed(self, text: str, axes: list[str]) -> str:
        """The statement with `p0` for `p`."""
        words = "".join(c if c.isalnum() or c == "_" else f"\0{c}\0" for c in text).split("\0")
        return "".join(f"{w}0" if w in axes else w for w in words)

    def _start(self) -> str | None:
        rng, t = self.rng, self.made.accumulator
        kind = rng.choice(("none", "none", "zero", "zero", "number", "limit", "element"))
        if kind == "none":
            return None
        if kind == "element" and self.spatial:
            y = rng.choice(self.spatial)
            self.tensors["Z"] = f"{t}[{self.extents[y]}]"
            return f"Z[{y}]"
        if kind == "limit" and t in ("s32", "s16"):
            return rng.choice({"s32": ("2147483647", "2147450000", "-2147483647"), "s16": ("32767", "-32700")}[t])
        if kind == "limit" and t == "f32" and self.made.combine in ("max", "min"):
            return "-inf" if self.made.combine == "max" else "inf"
        return rng.choice(("0", "7")) if kind != "zero" else "0"

    def _assumed(self) -> list[str]:
        rng, found = self.rng, []
        for name in ("a", "b"):
            if self.made.dtype.get(name) in ("s8", "u8", "s16") and rng.random() < 0.08:
                low = 0 if self.made.dtype[name] == "u8" else rng.choice((-7, 0, -100))
                found.append(f" assume({low} <= {name.upper()} <= {rng.choice((1, 7, 100))})")
        return found


def respelled(rng: Random, made: Instruction) -> str:
    """The term, or another spelling of the same value."""
    choices = [made.term, made.term]
    if made.term == "{t}({a}) * {t}({b})":
        choices += ["{t}({b}) * {t}({a})", "-(-{t}({a}) * {t}({b}))"]
        if made.accumulator == "s32":
            choices.append("s32(s64({a}) * s64({b}))")
    if made.term == "{t}({a}) + {t}({b})":
        choices += ["{t}({b}) + {t}({a})", "{t}({b}) - (-{t}({a}))"]
    if made.term == "max({t}({a}), {t}({b}))" and made.accumulator != "f32":
        choices.append("({t}({a}) if {t}({a}) > {t}({b}) else {t}({b}))")
    return rng.choice(choices)


def changed(rng: Random, made: Instruction) -> Instruction:
    """The same with one thing changed: an operator, a cast or its place, a type, the combination."""
    t = made.term
    found = [replace(made, combine="-=" if made.combine == "+=" else "+=")]
    if made.combine == "sat":
        found += [replace(made, combine="+=")] * 3
    for old, new in (
        (" * ", " + "),
        (" + ", " - "),
        ("abs(", "("),
        ("max(", "min("),
        (" ^ ", " & "),
        (" & ", " | "),
        ("sat_s8", "s8"),
        (" else 0", " else 1"),
    ):
        if old in t:
            found.append(replace(made, term=t.replace(old, new, 1)))
    swap = {"u8": "s8", "s8": "u8", "u4": "s4", "s4": "u4", "f16": "bf16", "s16": "s8"}
    for n in made.dtype:
        if made.dtype[n] in swap and " > {b}" not in t:
            found.append(replace(made, dtype=made.dtype | {n: swap[made.dtype[n]]}))
    return rng.choice(found)


def program(rng: Random, made: Instruction) -> str:
    """A program for the instruction, or for one that differs a little."""
    if rng.random() < 0.15:
        made = changed(rng, made)
    elif made.combine == "sat" and rng.random() < 0.5:
        made = replace(made, combine="+=")  # a program that wraps, on an instruction that clamps
    found = _Program(rng, made)
    found.axes()
    found.elements()
    found.conditions()
    return found.text()
