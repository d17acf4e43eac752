"""Random programs for the lowering: contractions with awkward indices, guards and bounds, and stages around them.

Every index is made to fit by giving its tensor the extent that it needs, or by a guard that keeps it inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from hypothesis import strategies as st

DTYPES = (
    ("u8", "s8", "s32"), ("s8", "u8", "s32"), ("s8", "s8", "s32"), ("s16", "s16", "s32"), ("f32", "f32", "f32"),
    ("f32", "f32", "f32"), ("f64", "f64", "f64"), ("bf16", "bf16", "f32"), ("s32", "s32", "s32"), ("u8", "u8", "u32"),
    ("e4m3", "e8m0", "f32"),
)  # fmt: skip
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 18, 19, 21, 31, 32, 33, 35, 40)
NAMES = ("i", "j", "b", "ir", "e", "x_y", "thread")
INNER = ("p", "q", "r", "iu", "et")
Ranges = dict[str, tuple[int, int]]
Loops = list[tuple[str, str]]
Made = tuple[str, str, Loops, list[str]]
"""A target's name and dtype, its spatial loops, its subscripts."""


@dataclass
class Term:
    """An affine index: text and inclusive range."""

    text: str
    low: int
    high: int

    def plus(self, c: int) -> Term:
        text = self.text if c == 0 else f"{self.text} {'+' if c > 0 else '-'} {abs(c)}"
        return Term(text, self.low + c, self.high + c)


@dataclass
class Writer:
    """One program while it is drawn. `tensors` are `name: dtype[shape]` parameters, `inner` intermediates."""

    draw: st.DrawFn
    most_points: int = 3000
    tensors: dict[str, str] = field(default_factory=dict)
    inner: dict[str, str] = field(default_factory=dict)
    assumes: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    scalars: dict[str, str] = field(default_factory=dict)

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def chance(self, one_in: int) -> bool:
        return bool(self.draw(st.integers(1, one_in)) == one_in)

    # -- indices

    def term(self, axes: tuple[str, ...], ranges: Ranges) -> Term:
        """An index over one or two axes that starts at 0."""
        a = axes[0]
        low, high = ranges[a]
        if len(axes) == 2:
            (l2, h2), s, b = ranges[axes[1]], self.pick(1, 1, 2), axes[1]
            term = Term(f"{a} + {s} * {b}" if s > 1 else f"{a} + {b}", low + s * l2, high + s * h2)
            return term.plus(-term.low)
        match self.pick("plain", "plain", "plain", "plain", "shift", "stride", "reverse", "div", "mod"):
            case "shift":
                return Term(a, low, high).plus(-low + self.pick(0, 1, 2))
            case "stride":
                s = self.pick(2, 3)
                return Term(f"{s} * {a}", s * low, s * high).plus(-s * low + self.pick(0, 1))
            case "reverse":
                return Term(f"{high} - {a}", 0, high - low)
            case "div":
                return Term(f"{a} // 2", low // 2, high // 2)
            case "mod":
                return Term(f"{a} % 5", 0, min(4, high))
            case _:
                return Term(a, low, high)

    def read(self, dtype: str, axes: list[str], ranges: Ranges, guards: list[str], const: bool = False) -> str:
        """A new tensor's element that depends on these axes."""
        left = list(self.draw(st.permutations(axes)))
        parts: list[str] = []
        shape: list[int] = []
        while left:
            n = 2 if len(left) > 1 and self.chance(5) else 1
            term = self.term(tuple(left[:n]), ranges)
            left = left[n:]
            extent = term.high + 1 + self.pick(0, 0, 0, 1)
            if extent > 2 and self.chance(8):  # a guard keeps the address inside
                pad = self.pick(0, 1)
                term, extent = term.plus(-pad), extent - 1 - self.pick(0, pad)
                text = f"0 <= {term.text} < {extent}" if pad else f"{term.text} < {extent}"
                guards.append(text)
            parts.append(term.text)
            shape.append(extent)
        if not parts or self.chance(12):
            parts.append("0")
            shape.append(self.pick(1, 2))
        if self.chance(14):
            parts[0], guarded = f"I{len(self.tensors)}[{parts[0]}]", shape[0]
            name = parts[0].split("[")[0]
            self.tensors[name] = f"s32[{guarded}]"
            self.assumes.append(f"assume(0 <= {name} <= {guarded - 1})")
        known = [
            n for n, t in self.tensors.items() if t == f"{dtype}[{', '.join(map(str, shape))}]" and n.startswith("A")
        ]
        if known and self.chance(3):
            return f"{known[0]}[{', '.join(parts)}]"
        name = f"A{len(self.tensors)}"
        text = f"{dtype}[{', '.join(map(str, shape))}]"
        self.tensors[name] = f"const[{text}]" if const else text
        return f"{name}[{', '.join(parts)}]"

    # -- loops

    def loops(self, spatial: int, reduction: int) -> tuple[Loops, Loops, Ranges]:
        """(name, range text) of spatial and reduction loops, and each one's range in the box."""
        names = [*self.draw(st.permutations(NAMES))[:spatial], *self.draw(st.permutations(INNER))[:reduction]]
        ranges: Ranges = {}
        texts: list[tuple[str, str]] = []
        deep = self.pick(129, 130, 150, 257) if reduction and self.chance(5) else 1  # more than a cache block of depth
        left = max(1, self.most_points // deep)
        for n, name in enumerate(names):
            extent = min(self.pick(*EXTENTS), max(1, left // (2 if n == 0 else 1)))
            left = max(1, left // extent)
            if n == spatial:
                extent *= deep
            low = self.pick(0, 0, 0, 0, 1, 3)
            text = f"range({low}, {low + extent})" if low else f"range({extent})"
            if ranges and self.chance(7):
                outer = self.pick(*ranges)
                if self.chance(2):
                    low, extent, text = 0, ranges[outer][1] + 1, f"range({outer} + 1)"
                else:
                    least, most = ranges[outer]
                    low, extent, text = least, most + 3 - least, f"range({outer}, {most + 3})"
            ranges[name] = low, low + extent - 1
            texts.append((name, text))
        return texts[:spatial], texts[spatial:], ranges

    # -- stages

    def contraction(self, number: int, intermediate: bool) -> Made | None:
        """Writes loops of a reduction. None where no other stage may use all of the target."""
        x, y, acc = self.pick(*DTYPES)
        spatial, reduction, ranges = self.loops(self.pick(1, 2, 2, 2, 3), self.pick(0, 1, 1, 1, 2, 2))
        inner = [n for n, _ in reduction]
        guards: list[str] = []
        subscripts, shape = [], []
        for name, _ in self.draw(st.permutations(spatial)):
            low, high = ranges[name]
            term = self.pick(
                *[Term(name, low, high)] * 5, Term(name, low, high).plus(1), Term(f"2 * {name}", 2 * low, 2 * high),
                Term(f"{high} - {name}", 0, high - low),
            )  # fmt: skip
            extent = term.high + 1
            if extent > 2 and self.chance(25):
                extent -= 1
                guards.append(f"{term.text} < {extent}")
            subscripts.append(term.text)
            shape.append(extent)
        if self.chance(12):
            subscripts.append("0")
            shape.append(1)
        own = [n for n, _ in spatial]
        where = [n for n in own if self.pick(True, False)]
        other = [n for n in own if n not in where or self.chance(4)]
        shrunk = bool(guards)
        initial = self.init(acc, own, ranges) if reduction and not shrunk else None
        op, value = self.value(x, y, acc, where + inner, other + inner, ranges, guards)
        name = f"C{number}"
        element = f"{name}[{', '.join(subscripts)}]"
        declared = f"{acc}[{', '.join(map(str, shape))}]"
        if intermediate and initial is not None and prod(shape) == prod(ranges[n][1] - ranges[n][0] + 1 for n in own):
            self.inner[name] = declared
        else:
            self.tensors[name] = declared
        if self.chance(3):
            guards += self.guards(own, inner, ranges)
        pad = "    "
        for n, text in spatial:
            self.lines.append(f"{pad}for {n} in {text}:")
            pad += "    "
        if initial is not None:
            self.lines.append(f"{pad}{element} = {initial}")
        for n, text in reduction:
            self.lines.append(f"{pad}for {n} in {text}:")
            pad += "    "
        if guards:
            self.lines.append(f"{pad}if {' and '.join(dict.fromkeys(guards))}:")
            pad += "    "
        update = f"{op}({element}, {value})" if op in ("min", "max") else ""
        self.lines.append(f"{pad}{element} = {update}" if update else f"{pad}{element} {op} {value}")
        return None if shrunk else (name, acc, spatial, subscripts)

    def init(self, acc: str, own: list[str], ranges: Ranges) -> str | None:
        match self.pick("zero", "zero", "zero", "none", "one", "bias"):
            case "zero":
                return "0"
            case "one":
                return "1"
            case "bias":
                return self.bias(acc, own[-1], ranges)
            case _:
                return None

    def bias(self, dtype: str, axis: str, ranges: Ranges) -> str:
        name = f"A{len(self.tensors)}"
        self.tensors[name] = f"{dtype}[{ranges[axis][1] + 1}]"
        return f"{name}[{axis}]"

    def value(
        self, x: str, y: str, acc: str, one: list[str], two: list[str], ranges: Ranges, guards: list[str]
    ) -> tuple[str, str]:
        """Operation and value of an update."""
        a = self.read(x, one, ranges, guards, const=self.chance(8))
        kind = self.pick(*["product"] * 8, "minus", "alone", "square", "three", "choice", "max", "min", "times", "last")
        if kind in ("alone", "square", "max", "min", "times", "last"):
            left = f"{acc}({a})"
            found = {
                "alone": ("+=", left), "square": ("+=", f"{left} * {left}"), "max": ("max", left), "min": ("min", left),
                "times": ("*=", left), "last": ("=", left),
            }  # fmt: skip
            return found[kind]
        b = self.read(y, two, ranges, guards, const=self.chance(3))
        product = f"{acc}({a}) * {acc}({b})"
        if self.chance(4):
            product = f"{acc}({b}) * {acc}({a})"
        if kind == "three":
            return "+=", f"{product} * {self.bias(acc, two[-1] if two else one[-1], ranges)}" if one or two else product
        if kind == "choice":
            axis = self.pick(*ranges)
            return "+=", f"{product} if {axis} < {ranges[axis][1]} else 0"
        return ("-=" if kind == "minus" else "+="), product

    def guards(self, own: list[str], inner: list[str], ranges: Ranges) -> list[str]:
        found = []
        for _ in range(self.pick(1, 1, 2)):
            names = self.pick(own, inner or own, own + inner)
            a, b = self.pick(*names), self.pick(*own, *inner)
            low, high = ranges[a]
            middle = (low + high) // 2
            kinds = (f"{a} <= {b}", f"{a} < {middle + 1}", f"{middle} <= {a}", f"{a} + {b} > {middle}", f"{a} % 3 != 1")
            kind = self.pick(*kinds, f"{a} == {b} or {b} > {ranges[b][0]}", "data")
            if kind == "data":
                name = f"M{len(self.tensors)}"
                self.tensors[name] = f"s32[{high + 1}]"
                kind = f"{name}[{a}] > 0"
            found.append(kind)
        return found

    def follower(self, number: int, name: str, acc: str, spatial: Loops, subscripts: list[str]) -> None:
        """A stage behind a contraction, in loops of its own: elementwise, in place, or not quite either."""
        element = f"{name}[{', '.join(subscripts)}]"
        declared = self.tensors.get(name) or self.inner[name]
        shape = declared.partition("[")[2]
        out = f"D{number}"
        pad = "    "
        for n, text in spatial:
            self.lines.append(f"{pad}for {n} in {text}:")
            pad += "    "
        kinds = ("copy", "copy", "twice", "bias", "relu", "cast", "transposed", "update", "scaled", "reduced")
        kind = self.pick(*kinds, *(["power"] if acc in ("s32", "u32") else []))
        if kind in ("bias", "relu"):
            bound = {"bias": f"{element} += {acc}(3)", "relu": f"{element} = max({element}, 0)"}[kind]
            self.lines.append(pad + bound)
            return
        dtype = self.pick("f32", "s8", "s32") if kind == "cast" else acc
        value = f"{dtype}({element})" if kind == "cast" else element
        if kind == "power":
            dtype, value = "e8m0", f"bits_e8m0(u8({element}))"
        if kind == "twice":
            value = f"{element} * 2 + {element}"
        if kind == "scaled":
            self.scalars["alpha_" + acc] = acc
            value = f"{element} * alpha_{acc}"
        target = f"{out}[{', '.join(reversed(subscripts)) if kind == 'transposed' else ', '.join(subscripts)}]"
        if kind == "transposed":
            shape = ", ".join(reversed(shape.rstrip("]").split(", "))) + "]"
        if kind == "reduced":
            shape, target = shape.partition(",")[0].rstrip("]") + "]", f"{out}[{subscripts[0]}]"
        self.tensors[out] = f"{dtype}[{shape}"
        self.lines.append(f"{pad}{target} {'+=' if kind in ('update', 'reduced') else '='} {value}")

    def text(self) -> str:
        parameters = [f"{n}: {t}" for n, t in self.tensors.items()] + [f"{n}: {t}" for n, t in self.scalars.items()]
        lines = [f"def f({', '.join(parameters)}):"]
        lines += [f"    {n}: {t}" for n, t in self.inner.items()] + [f"    {a}" for a in self.assumes]
        return "\n".join([*lines, *self.lines]) + "\n"


@st.composite
def lowered_texts(draw: st.DrawFn, most_points: int = 3000) -> str:
    """The text of a program `f` of one or two contractions of so many points each, with up to two stages behind."""
    writer = Writer(draw, most_points)
    for number in range(writer.pick(1, 1, 2)):
        behind = writer.pick(0, 0, 1, 2)
        made = writer.contraction(number, intermediate=behind > 0 and writer.chance(2))
        for k in range(behind if made else 0):
            writer.follower(10 * number + k, *made)
    return writer.text()


RECURRENCES = (
    "S[i] = S[i - 1] + A[i]", "S[i] = max(S[i - 1], A[i])", "A[i] = A[i - 1] * 2 + S[i]", "S[i] += A[n - 1 - i]",
    "A[i] = A[n - 1 - i]", "A[i] = A[i // 2]", "S[i - 1] = A[i]", "S[i % 4] += A[i]", "A[i] = S[i - 1]",
    "S[i] *= A[0]", "A[0] = max(A[0], S[i])", "S[(i * 3) % n] = A[i]", "S[0] += A[i]",
    "A[i] += S[i] if A[i] > 0 else 1",
)  # fmt: skip


@st.composite
def recurrence_texts(draw: st.DrawFn) -> str:
    """Stages that depend on each other across iterations: what must not be taken apart, moved or vectorised."""
    n = draw(st.sampled_from([4, 9, 17, 33]))
    lines = [f"def f(A: s32[n], S: s32[n], *, n={n}):"]
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            lines.append(draw(st.sampled_from(["    S[0] = 1", "    A[1] = S[0]", "    S[0] = A[n - 1]"])))
        pad = "    "
        if draw(st.integers(0, 3)) == 0:
            lines.append("    for t in range(3):")
            pad += "    "
        lines.append(f"{pad}for i in range(1, n):")
        lines += [f"{pad}    {draw(st.sampled_from(RECURRENCES))}" for _ in range(draw(st.integers(1, 2)))]
    return "\n".join(lines) + "\n"


@st.composite
def triangular_texts(draw: st.DrawFn) -> str:
    """Sums whose ends other loops decide, over rows that data may choose: of matrices, or of one vector repeatedly."""
    n, d = draw(st.sampled_from([1, 5, 9, 20])), draw(st.sampled_from([1, 4, 17]))
    dtype = draw(st.sampled_from(TRIANGLES))
    lower = draw(st.sampled_from(["0", "0", "3", "i", "i - 2", "2 * i"]))
    upper = draw(st.sampled_from(["i + 1", "i + 1", "i", "i + 4", "2 * i + 1", f"{n}", f"{n} - i", f"{n + 3}"]))
    wide = draw(st.booleans())
    at = ["X[j + 4, k]", "X[j + 4, k] * A[i, j + 4]", "T[I[i], j + 4] * X[j + 4, k]"] if wide else [
        "x[j + 4]", "A[i, j + 4]", "A[i, j + 4] * x[j + 4]", "T[I[i], j + 4]", "T[I[i], j + 4] - x[i]",
    ]  # fmt: skip
    term, element = draw(st.sampled_from(at)), "Y[i, k]" if wide else "Y[i]"
    largest = f"{element} = max({element}, {term})"
    update = draw(st.sampled_from([f"{element} += {term}", f"{element} -= {term}", largest]))
    long = 2 * n + 12
    tensors = (
        f"A: {dtype}[{n}, {long}], T: {dtype}[7, {long}], I: s32[{n}], X: {dtype}[{long}, {d}], x: {dtype}[{long}], "
        f"Y: {dtype}[{n}{f', {d}' if wide else ''}]"
    )
    pad = " " * (12 if wide else 8)
    lines = [f"def f({tensors}):", "    assume(0 <= I <= 6)", f"    for i in range({n}):"]
    lines += [f"        for k in range({d}):"] if wide else []
    lines += [f"{pad}{element} = {draw(st.sampled_from(['0', '1', 'x[0]']))}"] if draw(st.integers(0, 4)) else []
    lines += [f"{pad}for j in range({lower}, {upper}):", f"{pad}    {update}"]
    return "\n".join(lines) + "\n"


TRIANGLES = ("f32", "f32", "f64", "s32", "s16")
