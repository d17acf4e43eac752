"""Programs of reductions over rows, as people write them and as they get them wrong: `program(seed)` is one's text.

Beside what `cascades` draws: several row axes, one or two reduced ones, heads that share keys, references of references
and of other rows, maxima that start from a number or from data, powers, moments of any order, products, places of
maxima, second greatest elements, gathers, casts at any place, nests in other orders, loops in two levels, results
divided afterwards or in place, operands computed in a stage of their own.
"""

from __future__ import annotations

import re
from random import Random

NUMBERS = ("0.5", "2", "0.25", "1", "3", "0.3", "0.7213475", "1e-5", "-1", "-0.5", "0")
MASKS = ("-inf", "-inf", "-inf", "-1e30", "-10000", "-65504")


class Writer:
    """Draws one program; `text` is it. `l` is the length of the reduced axis, `h` and `n` are the rows."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        r = self.random
        self.rows = r.choice([("i",), ("i",), ("i",), ("h", "i"), ()])
        self.reduced = r.choice([("j",), ("j",), ("j",), ("j",), ("j", "k")])
        self.sizes = {"h": r.randint(1, 2), "i": r.randint(1, 4), "j": r.choice([1, 2, 3, 5, 8, 11]), "k": 2, "e": 2}
        self.extremes: list[tuple[str, str, str, str]] = []  # name, reducer, score, guard
        self.sums: list[str] = []
        self.made: list[str] = []
        self.dtype = r.choice(["f32"] * 8 + ["f16", "f64"])
        self.stages: list[tuple[str, ...]] = []
        self.extra: dict[str, tuple[str, ...]] = {}
        self.odd = r.choice([0.0, 0.02, 0.05, 0.15])
        self.text = self._program()

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    # Elements

    def row(self, name: str) -> str:
        """An element of this row; now and then of another."""
        at = list(self.rows)
        if not at:
            return f"{name}[0]"
        if self.chance(self.odd * 0.3):
            at[-1] = self.pick("0", f"{self.sizes['i'] - 1} - i", "i // 2", "i % 2")
        return f"{name}[{', '.join(at)}]"

    def leaf(self) -> str:
        rows, j = [*self.rows], [*self.reduced]
        at = ", ".join([*rows, *j])
        match self.random.randrange(13):
            case 0 | 1 | 2 | 3:
                return f"X[{at}]"
            case 4 | 5:
                return f"Y[{at}]"
            case 6 | 7:
                return f"V[{', '.join(j)}]"
            case 8:
                return f"{self.dtype}(j)" if self.chance(0.7) or not rows else f"{self.dtype}({rows[-1]} - j)"
            case 9 if len(j) == 1:
                return f"V[I[{j[0]}]]"
            case 10 if len(j) == 1 and rows:
                return f"X[{', '.join([*rows, 'I[j]'])}]"
            case 11:
                return f"abs(X[{at}])"
            case 12 if len(rows) == 2:
                return f"Y[{self.pick('h // 2', '0')}, i, {', '.join(j)}]"
        return f"X[{at}]"

    def data(self, depth: int = 0) -> str:
        if depth > 1 or self.chance(0.5):
            return self.leaf()
        a = self.data(depth + 1)
        match self.random.randrange(12):
            case 0 | 1:
                return f"{a} * {self.pick(*NUMBERS)}"
            case 2:
                return f"({a} {self.pick('+', '-')} {self.data(depth + 1)})"
            case 3:
                return f"{a} * c"
            case 4:
                return f"({a} if {self.condition()} else {self.pick('0', '1', a + ' * 0.5')})"
            case 5:
                return f"({a}) * ({self.data(depth + 1)})"
            case 6:
                return f"{self.pick('tanh', 'erf', 'sigmoid', 'abs', 'round', 'floor')}({a})"
            case 7:
                return f"{self.pick('max', 'min')}({a}, {self.pick('0', 'c', self.data(depth + 1))})"
            case 8:
                return f"sqrt(({a}) * ({a}) + {self.pick('1e-5', '1', '0')})"
            case 9:
                return f"({a} / {self.pick('2', '3', 'c', '(1 + ' + self.leaf() + ' * ' + self.leaf() + ')')})"
            case 10:
                return f"{self.dtype}({self.pick('bf16', 'f16', 's32')}({a}))"
        return f"fma({a}, {self.data(depth + 1)}, {self.pick('1', 'c', 'V[' + ', '.join(self.reduced) + ']')})"

    def condition(self) -> str:
        last = self.rows[-1] if self.rows else "0"
        at = ", ".join([*self.rows, *self.reduced])
        return self.pick(f"j <= {last}", f"j > {last}", "j % 2 == 0", "j > 0", f"G[{at}] != 0", f"X[{at}] > 0",
                         f"X[{at}] > Y[{at}]", f"j <= {last} and j > {last} - 2", f"s32(j) < L[{last}]",
                         "c > 0", f"j >= {last} + 1 and G[{at}] != 0", f"j < {last}", "0 <= j - 1")  # fmt: skip

    def score(self, op: str) -> str:
        score = self.data()
        if self.chance(0.35):
            hidden = self.pick(*MASKS) if self.dtype != "f16" else "-inf"
            if op == "min":
                hidden = hidden.removeprefix("-")
            if self.chance(self.odd):
                hidden = self.pick("0", "inf", "-inf")
            score = f"({score} if {self.condition()} else {hidden})"
        return score

    # References

    def reference(self) -> str:
        """A result of an earlier stage, in some form."""
        names = [n for n, *_ in self.extremes] + self.sums
        read = self.row(self.random.choice(names))
        if not self.chance(0.15 + self.odd):
            return read
        return self.pick(f"{read} * {self.pick(*NUMBERS)}", f"({read} + 1)", f"max({read}, 0)", f"(-{read})",
                         f"{read} * c", f"tanh({read})", f"abs({read})",
                         f"({read} + {self.row(self.random.choice(names))})",
                         f"({read} if {read} > -inf else 0)")  # fmt: skip

    def total(self) -> str:
        return self.row(self.random.choice(self.sums))

    def exponential(self) -> str:
        if not self.extremes:
            return f"exp({self.data()} * 0.25)"
        name, op, score, _ = self.random.choice(self.extremes)
        of = score if self.chance(0.85) else self.data()
        ref = self.row(name)
        if self.chance(self.odd):
            ref = self.reference()
        sign = "-" if (op == "min") != self.chance(self.odd) else ""
        apart = f"{sign}({of} - {ref})"
        z = self.total() if self.sums else f"{self.dtype}(2)"
        scale = self.pick(*NUMBERS)
        match self.random.randrange(24):
            case 0:
                return f"exp({apart} * {scale})"
            case 1:
                return f"exp({apart} * c)"
            case 2:
                return f"exp(({of}) * {scale} - {ref} * {scale})"
            case 3:
                return f"exp({of}) / exp({ref})"
            case 4:
                return f"exp({of}) * exp(-{ref})"
            case 5:
                return f"(1 / exp(-{apart}))"
            case 6:
                return f"exp({apart} + {self.data()})"
            case 7:
                return f"exp({of} - ({ref} + log({z})))"
            case 8:
                return f"exp({apart} - log({z}))"
            case 9:
                return f"exp({apart}) / {z}"
            case 10:
                return f"(exp({apart}) / (exp({ref}) * {z}))" if self.chance(0.3) else f"(exp({apart}) * (1 / {z}))"
            case 11:
                return f"exp({apart}) * exp({apart})"
            case 12:
                return f"{self.pick('sqrt', 'rsqrt')}(exp({apart}))"
            case 13:
                return f"(exp({apart}) - {self.pick('1', '0.5')})"
            case 14:
                return f"exp({apart}) * ({apart})"
            case 15:
                return f"exp({of} - {ref} - {self.reference()})"
            case 16:
                return f"(exp({apart}) if {self.condition()} else 0)"
            case 17:
                return f"log(exp({apart}){self.pick('', ' * ' + z)})"
        return f"exp({apart})"

    def moment(self) -> str:
        if not self.sums and not self.extremes:
            return self.data()
        ref = self.reference()
        if self.chance(0.5) and self.sums:
            ref = f"{self.total()} / {self.pick(str(self.sizes['j']), '4', '3')}"
        x = self.leaf() if self.chance(0.8) else self.data()
        apart = f"({x} - {ref})"
        match self.random.randrange(9):
            case 0:
                return apart
            case 1 | 2:
                return f"{apart} * {apart}"
            case 3:
                return f"{apart} * {apart} * {apart}"
            case 4:
                return f"{apart} * ({self.data()} - {self.reference()})"
            case 5:
                return f"{x} * rsqrt({self.reference()} + {self.pick('1e-5', '1', '8')})"
            case 6:
                return f"({x} / ({self.pick('1', '1e-5')} + abs({ref})))"
            case 7:
                return f"{apart} * rsqrt(abs({self.reference()}) + 1)"
        return f"{x} * {ref}"

    def factor(self) -> str:
        match self.random.randrange(16):
            case 0 | 1 | 2:
                return self.moment()
            case 3 | 4:
                return self.data()
            case 5 if self.sums:
                return f"(1 / {self.total()})"
            case 6 if self.made:
                return f"{self.random.choice(self.made)}[{', '.join([*self.rows, *self.reduced])}]"
            case 7 if self.sums:
                return f"{self.pick('sqrt', 'rsqrt', 'log', 'exp')}({self.total()}{self.pick('', ' * 0.1 + 1')})"
        return self.exponential()

    def wrapped(self, value: str) -> str:
        """Now and then with something around it that changes what it means."""
        if not self.chance(self.odd):
            return value
        t = self.dtype
        return self.pick(f"(-({value}))", f"{t}({self.pick('bf16', 'f16')}({value}))", f"abs({value})",
                         f"tanh({value})",
                         f"sqrt({value})", f"max({value}, 0)", f"min({value}, c)", f"round({value})",
                         f"({value} + {self.leaf()})", f"(1 / ({value}))", f"log({value})", f"exp({value})",
                         f"(({value}) if {self.condition()} else 1)",
                         f"(({value}) if {self.reference() if self.extremes or self.sums else 'c'} > 0 else 0)",
                         f"fma({value}, {self.leaf()}, 1)")  # fmt: skip

    def term(self) -> str:
        count = self.random.choice([1, 1, 2, 2, 3])
        joined = " * ".join(f"({self.wrapped(self.factor())})" for _ in range(count))
        if self.chance(0.12):
            joined = f"{joined} {self.pick('+', '-')} {self.factor()}"
        if self.chance(0.05):
            joined = f"({joined}) / ({self.factor()})"
        return self.wrapped(joined)

    # Stages

    def reduction(self, name: str, op: str, term: str, guard: str = "", own: tuple[str, ...] = ()) -> None:
        start = {"max": "-inf", "min": "inf", "*": "1"}.get(op, "0")
        if self.chance(0.12):
            least = "-1e30" if self.dtype != "f16" else "-65504"
            starts = {"max": ("-2", least, "0", "c"), "min": ("2", least.removeprefix("-"), "c")}
            start = self.pick(*starts.get(op, ("1", "c", "1e-6", self.row("B0"))))
        self.stages.append(("reduce", name, op, term, guard, start, ",".join(own)))
        if own:
            self.extra[name] = own

    def extreme(self, name: str) -> None:
        op = self.pick("max", "max", "max", "min")
        if self.extremes and self.chance(0.3):
            score = self.pick(f"{self.data()} - {self.reference()}", f"{self.data()} + {self.reference()}",
                              f"{self.data()} * {self.reference()}", self.moment(),
                              "({0} if {0} < {1} else -inf)".format(self.extremes[0][2], self.row("M0")))  # fmt: skip
        else:
            score = self.score(op)
        guard = self.condition() if self.chance(0.1) else ""
        self.reduction(name, op, score, guard)
        self.extremes.append((name, op, score, guard))

    def place(self, name: str) -> None:
        """Where an extreme is, or how often."""
        reference, _, score, guard = self.random.choice(self.extremes)
        sign = "==" if self.chance(0.7) else self.pick(">=", "<=", ">", "<")
        at = self.row(reference)
        test = f"{score} {sign} {at}" if self.chance(0.7) else f"{at} {sign} {score}"
        how, value, other = self.random.choice(
            [("min", f"{self.dtype}(j)", "99"), ("max", f"{self.dtype}(j)", "-1"), ("+", "1", "0"),
             ("+", self.leaf(), "0"), ("min", f"{self.dtype}(j)", "inf")]
        )  # fmt: skip
        self.stages.append(("reduce", name, how, f"({value} if {test} else {other})",
                            guard if self.chance(0.9) else "", other, ""))  # fmt: skip
        self.sums.append(name)

    def _program(self) -> str:
        r = self.random
        for k in range(r.choice([0, 1, 1, 1, 1, 2, 2])):
            self.extreme(f"M{k}")
        if not self.extremes:
            self.reduction("S0", self.pick("+", "+", "+", "-", "*"), self.pick(self.data(), self.moment()))
            self.sums.append("S0")
        for k in range(1, r.choice([2, 3, 3, 4])):
            name = f"S{k}"
            kind = r.random()
            guard = self.condition() if self.chance(0.1) else ""
            if kind < 0.08 and self.extremes:
                self.place(name)
                continue
            if kind < 0.2 and (self.extremes or self.sums):
                self.stages.append(("element", f"P{k}", "=", self.term()))
                self.made.append(f"P{k}")
                if self.chance(0.5):
                    self.reduction(name, "+", f"P{k}[{', '.join([*self.rows, *self.reduced])}] * {self.leaf()}", guard)
                    self.sums.append(name)
                    continue
            op = self.pick(*["+"] * 8, "-", "*", "max", "min")
            if self.chance(0.3):
                term = f"{self.term()} * W[{', '.join([*self.reduced, 'e'])}]"
                self.reduction(name, op, term, guard, ("e",))
                continue
            self.reduction(name, op, self.term(), guard)
            self.sums.append(name)
        if self.chance(0.25):
            name, own = r.choice([(s[1], s[6]) for s in self.stages if s[0] == "reduce"])
            others = [n for n in self.sums if n != name] or [self.extremes[0][0] if self.extremes else "S0"]
            by = self.row(r.choice(others))
            if name not in by:
                how = self.pick(f"/ {by}", f"* {by}", f"/ {by}", f"+ {by}", f"* rsqrt({by} * 0.1 + 1)")
                target = name if self.chance(0.5) else "Q" + name
                self.stages.append(("finish", target, name, how, own))
        if self.chance(0.06):
            self.stages.insert(r.randint(0, len(self.stages)), ("overwrite", self.pick("X", "Y")))
        return self._written()

    # Texts

    def _written(self) -> str:
        nests: list[tuple[bool, list[str]]] = []
        together = self.random.random() * 0.8
        for stage in self.stages:
            lines = self._stage(stage)
            if isinstance(lines, str):
                nests.append((False, lines.splitlines()))
            elif nests and nests[-1][0] and self.chance(together):
                nests[-1][1].extend(lines)
            else:
                nests.append((True, list(lines)))
        body: list[str] = []
        for in_rows, lines in nests:
            if in_rows and self.rows:
                loop = f"for {', '.join(self.rows)} in {self._over(self.rows)}:"
                body += [loop, *("    " + x for x in lines)]
            else:
                body += lines
        return self._head() + "\n".join("    " + x for x in body) + "\n"

    def _over(self, axes: tuple[str, ...] | list[str]) -> str:
        sizes = [str(self.sizes[a]) for a in axes]
        return f"range({sizes[0]})" if len(sizes) == 1 else f"grid({', '.join(sizes)})"

    def _stage(self, stage: tuple[str, ...]) -> list[str] | str:
        """Lines in the loops over rows, or a text with loops of its own."""
        rows = list(self.rows)
        match stage:
            case ("overwrite", name):
                at = ", ".join([*rows, *self.reduced])
                axes = [*rows, *self.reduced]
                return f"for {', '.join(axes)} in {self._over(axes)}:\n    {name}[{at}] = {name}[{at}] * 2"
            case ("element", name, _, term):
                at = ", ".join([*rows, *self.reduced])
                return [f"for {', '.join(self.reduced)} in {self._over(self.reduced)}:", f"    {name}[{at}] = {term}"]
            case ("finish", target, name, how, own):
                extra = [e for e in own.split(",") if e]
                at = ", ".join([*(rows or ["0"]), *extra])
                line = f"{target}[{at}] = {name}[{at}] {how}"
                return [f"for {extra[0]} in {self._over(extra)}:", "    " + line] if extra else [line]
            case ("reduce", name, op, term, guard, start, own):
                return self._reduction(name, op, term, guard, start, [e for e in own.split(",") if e])
        raise AssertionError(stage)

    def _reduction(self, name: str, op: str, term: str, guard: str, start: str, extra: list[str]) -> list[str] | str:
        at = f"{name}[{', '.join([*(self.rows or ['0']), *extra])}]"
        update = f"{at} = {op}({at}, {term})" if op in ("max", "min") else f"{at} {op}= {term}"
        lines = [update] if not guard else [f"if {guard}:", "    " + update]
        reduced = list(self.reduced)
        j = self.sizes["j"]
        if reduced == ["j"] and j > 3 and self.chance(0.04):
            lines = [f"for jo, ji in grid({-(-j // 4)}, 4):", f"    if jo * 4 + ji < {j}:",
                     *("        " + self._at(x, "jo * 4 + ji") for x in lines)]  # fmt: skip
        elif reduced == ["j"] and self.chance(0.04):
            lines = [f"for j in range({self.pick('1', '0')}, {j}):", *("    " + x for x in lines)]
        else:
            if len(reduced) == 2 and self.chance(0.1):
                reduced.reverse()
            lines = [f"for {', '.join(reduced)} in {self._over(reduced)}:", *("    " + x for x in lines)]
        axes = [*self.rows, *extra]
        if axes and self.chance(0.06):  # the start in a nest of its own, the reduced axis outermost
            loop, first = f"for {', '.join(axes)} in {self._over(axes)}:", f"    {at} = {start}"
            inner = [f"for {', '.join(axes)} in {self._over(axes)}:", *("    " + x for x in lines)]
            return "\n".join([loop, first, *inner])
        lines = [f"{at} = {start}", *lines]
        return [f"for {extra[0]} in {self._over(extra)}:", *("    " + x for x in lines)] if extra else lines

    @staticmethod
    def _at(line: str, index: str) -> str:
        return re.sub(r"\bj\b", f"({index})", line)

    def _head(self) -> str:
        t, s = self.dtype, self.sizes
        rows, reduced = [str(s[a]) for a in self.rows], [str(s[a]) for a in self.reduced]
        full = ", ".join([*rows, *reduced])
        given = [f"X: {t}[{full}]", f"Y: {t}[{full}]", f"V: {t}[{', '.join(reduced)}]",
                 f"W: {t}[{', '.join([*reduced, '2'])}]", f"G: u8[{full}]", f"I: s32[{s['j']}]",
                 f"L: s32[{rows[-1] if rows else 1}]", f"B0: {t}[{', '.join(rows) or '1'}]", f"c: {t}"]  # fmt: skip
        kept: list[str] = []
        local: list[str] = []
        for stage in self.stages:
            name = stage[1]
            if stage[0] == "overwrite" or any(f"{name}:" in x for x in (*kept, *local)):
                continue
            own = ["2"] if (stage[0] == "reduce" and stage[6]) or (stage[0] == "finish" and stage[4]) else []
            shape = full if stage[0] == "element" else ", ".join([*(rows or ["1"]), *own])
            (kept if self.chance(0.6) else local).append(f"{name}: {t}[{shape}]")
        if not kept and local:
            kept.append(local.pop())
        assume = f"    assume(0 <= I <= {s['j'] - 1})\n"
        return f"def f({', '.join([*given, *kept])}):\n{assume}" + "".join(f"    {x}\n" for x in local)


def program(seed: int) -> str:
    """A program's text."""
    return Writer(seed).text
