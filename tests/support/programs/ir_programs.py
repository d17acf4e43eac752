"""Random small programs of the language, as text: every dtype, guards, gathers, reductions, dependences."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from autosched.ir.dtypes import DTYPES

INTEGERS = ["b1", "u4", "s4", "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
FLOATS = ["e2m1", "e4m3", "e5m2", "e3m4", "e4m3fnuz", "e5m2fnuz", "f16", "bf16", "tf32", "f32", "f64"]


def reads_bits_of(d: str, source: str) -> bool:
    """Whether `bits_d` takes the source, and says what its answer is: the bits of a NaN are left open."""
    into, of = DTYPES[d], DTYPES[source]
    return d != source and into.bits == of.bits and not (into.padding or of.padding) and of.finite


@dataclass
class Writer:
    """State while one program is drawn: tensors (name to dtype and shape), open axes (name to inclusive range)."""

    draw: st.DrawFn
    tensors: dict[str, tuple[str, tuple[int, ...]]]
    writable: list[str]
    axes: dict[str, tuple[int, int]] = field(default_factory=dict)
    count: int = 0
    locals: int = 0

    def pick(self, *options: object) -> object:
        return self.draw(st.sampled_from(options))

    # -- indices

    def index(self, extent: int) -> str:
        """An index expression inside 0 … extent - 1: plain, shifted, reversed, combined, or a remainder."""
        choices = [str(self.draw(st.integers(0, extent - 1)))]
        for name, (low, high) in self.axes.items():
            if high < extent and low >= 0:
                choices += [name] * 4
                choices.append(f"{extent - 1} - {name}")
            for shift in (1, 2):
                if high + shift < extent:
                    choices.append(f"{name} + {shift}")
                if low - shift >= 0 and high - shift < extent:
                    choices += [f"{name} - {shift}"] * 2
            if 2 * high + 1 < extent:
                choices += [f"{name} * 2", f"{name} * 2 + 1"]
            choices.append(f"({name} * {self.draw(st.integers(1, 3))} + 1) % {extent}")
            choices.append(f"min({name}, {extent - 1})" if low >= 0 else f"max({name}, 0) % {extent}")
            for other, (l2, h2) in self.axes.items():
                if other != name and low + l2 >= 0 and high + h2 < extent:
                    choices.append(f"{name} + {other}")
                if other != name and l2 == 0 and low == 0 and high * (h2 + 1) + h2 < extent:
                    choices += [f"{name} * {h2 + 1} + {other}"] * 2
        return str(self.draw(st.sampled_from(choices)))

    def element(self, name: str) -> str:
        return f"{name}[{', '.join(self.subscript(e) for e in self.tensors[name][1])}]"

    def subscript(self, extent: int) -> str:
        if "I" in self.tensors and extent >= 3 and self.draw(st.integers(0, 9)) == 0:
            return f"I[{self.index(self.tensors['I'][1][0])}]"  # I holds 0, 1 or 2
        return self.index(extent)

    # -- conditions and values

    def condition(self, depth: int) -> str:
        kind = self.pick("axis", "axis", "data", "both")
        if kind == "axis" and self.axes:
            a = str(self.pick(*self.axes))
            b = str(self.pick(*self.axes, "1", "2"))
            return str(
                self.pick(
                    f"{a} < {b}", f"{a} + {b} != 2", f"0 <= {a} - {b} < 2", f"{a} % 2 == 0", f"{a} == 1 or {b} > 1"
                )
            )
        d = str(self.pick("s32", "f32", "u8"))
        test = f"{self.value(d, 1)} {self.pick('<', '<=', '==', '!=', '>', '>=')} {self.typed(d, 1)}"
        if kind == "both" and depth:
            return f"{self.pick('', 'not ')}({test}) {self.pick('and', 'or')} {self.condition(0)}"
        return test

    def typed(self, d: str, depth: int) -> str:
        """A value that shows its dtype by itself."""
        return f"{d}({self.literal(d)})" if depth <= 0 else self.value(d, depth - 1)

    def literal(self, d: str) -> str:
        if DTYPES[d].is_integer:
            low, high = DTYPES[d].limits
            return str(self.draw(st.integers(max(low, -9), min(high, 9)) | st.sampled_from([low, high])))
        return str(self.pick("0.0", "0.5", "-1.5", "2.0", "0.1", "3", "-1", "1e-3"))

    def value(self, d: str, depth: int) -> str:
        """A value of dtype `d`."""
        leaves = [n for n, (t, _) in self.tensors.items() if t == d]
        options = (
            ["leaf"]
            if depth <= 0
            else ["leaf", "cast", "cast", "arith", "arith", "arith", "select", "unary", "call", "index"]
        )
        match self.pick(*options):
            case "leaf":
                if leaves:
                    return self.element(str(self.pick(*leaves)))
                name = str(self.pick(*self.tensors))
                return f"{d}({self.element(name)})"
            case "cast":
                source = str(self.pick(*INTEGERS, *FLOATS))
                sat = "sat_" if DTYPES[d].is_integer and self.pick(True, False) else ""
                return f"{sat}{d}({self.value(source, depth - 1)})"
            case "arith":
                return self.arith(d, depth)
            case "select":
                return f"({self.value(d, depth - 1)} if {self.condition(0)} else {self.typed(d, depth - 1)})"
            case "unary":
                return (
                    f"(-{self.value(d, depth - 1)})"
                    if not DTYPES[d].is_integer or self.pick(True, False)
                    else f"(~{self.value(d, depth - 1)})"
                )
            case "call":
                return self.call(d, depth)
            case _:
                if not self.axes:
                    return f"{d}({self.literal(d)})"
                return f"{d}({self.pick(*self.axes)} * {self.draw(st.integers(-3, 300))})"

    def arith(self, d: str, depth: int) -> str:
        integer = DTYPES[d].is_integer
        op = str(
            self.pick("+", "-", "*", "min", "max", *(["//", "%", "<<", ">>", "&", "|", "^"] if integer else ["/"]))
        )
        left = self.value(d, depth - 1)
        if op == "/":
            return f"({left} / {self.pick('0.5', '3.0', '-0.75')})"
        right = self.literal(d) if self.pick(True, False, False) else self.value(d, depth - 1)
        return f"{op}({left}, {right})" if op in ("min", "max") else f"({left} {op} ({right}))"

    def call(self, d: str, depth: int) -> str:
        alike = [s for s in (*INTEGERS, *FLOATS) if reads_bits_of(d, s)]
        if alike and self.pick(True, False, False):
            return f"bits_{d}({self.value(str(self.pick(*alike)), depth - 1)})"
        x = self.value(d, depth - 1)
        if DTYPES[d].is_integer:
            return f"{self.pick('abs', 'popcount')}({x})"
        name = self.pick("abs", "exp", "log", "sqrt", "tanh", "erf", "sigmoid", "round", "floor", "ceil", "fma")
        return f"fma({x}, {self.value(d, 0)}, {self.value(d, 0)})" if name == "fma" else f"{name}({x})"

    # -- statements

    def block(self, depth: int, pad: str) -> list[str]:
        return [line for _ in range(self.draw(st.integers(1, 3))) for line in self.statement(depth, pad)]

    def statement(self, depth: int, pad: str) -> list[str]:
        match self.pick("assign", "assign", "loop", "loop", "if") if depth else "assign":
            case "loop":
                return self.loop(depth, pad)
            case "if" if self.axes:
                return [f"{pad}if {self.condition(1)}:", *self.block(depth - 1, pad + "    ")]
            case _:
                return self.assign(pad)

    def loop(self, depth: int, pad: str) -> list[str]:
        self.count += 1
        name = f"i{self.count}"
        low, extent = self.draw(st.sampled_from([0, 0, 0, 1])), self.draw(st.integers(1, 4))
        bound = str(low + extent)
        if self.axes and self.draw(st.integers(0, 4)) == 0:
            outer = str(self.pick(*self.axes))
            if self.axes[outer][0] >= 0:
                bound, extent = f"{outer} + 1", self.axes[outer][1] + 1 - low
        domain = f"range({bound})" if low == 0 else f"range({low}, {bound})"
        before = dict(self.axes)
        self.axes[name] = (low, max(low, low + extent - 1))
        lines = [f"{pad}for {name} in {domain}:", *self.block(depth - 1, pad + "    ")]
        self.axes = before
        return lines

    def assign(self, pad: str) -> list[str]:
        name = str(self.pick(*self.writable))
        d = self.tensors[name][0]
        target = self.element(name)
        op = str(self.pick("=", "=", "+=", "+=", "-=", "*=", "max", "min"))
        value = self.value(d, self.draw(st.integers(0, 3)))
        return [f"{pad}{target} = {op}({target}, {value})" if op in ("max", "min") else f"{pad}{target} {op} {value}"]


@st.composite
def program_texts(draw: st.DrawFn) -> str:
    """The text of a program `f` with inputs A B I S and written tensors C D T."""
    dtypes = st.sampled_from(INTEGERS + FLOATS)
    shapes = st.lists(st.integers(2, 5), min_size=1, max_size=2).map(tuple)
    tensors = {"A": (draw(dtypes), draw(shapes)), "B": (draw(dtypes), draw(shapes)), "C": (draw(dtypes), draw(shapes))}
    tensors["D"] = (draw(st.sampled_from([tensors["C"][0], tensors["A"][0]])), draw(shapes))
    tensors["I"] = ("s32", (draw(st.integers(3, 5)),))
    tensors["S"] = ("e8m0", draw(shapes))
    tensors["T"] = (draw(st.sampled_from(["s32", "f32", tensors["A"][0]])), draw(shapes))
    writer = Writer(draw, tensors, ["C", "D", "T"])

    def typed(name: str) -> str:
        d, shape = tensors[name]
        return f"{name}: {d}[{', '.join(map(str, shape))}]"

    lines = [f"def f({', '.join(typed(n) for n in 'ABISCD')}):", f"    {typed('T')}", "    assume(0 <= I <= 2)"]
    axes = [f"t{k}" for k in range(len(tensors["T"][1]))]
    lines += [f"    for {', '.join(axes)} in grid({', '.join(map(str, tensors['T'][1]))}):"]
    lines += [f"        T[{', '.join(axes)}] = 0"]
    for _ in range(draw(st.integers(1, 3))):
        lines += writer.loop(draw(st.integers(1, 3)), "    ")
    return "\n".join(lines) + "\n"


@st.composite
def reduction_texts(draw: st.DrawFn) -> str:
    """Sums of products with casts, guards and fused indices, as matrix products and convolutions are."""
    a, b = draw(st.sampled_from(INTEGERS + FLOATS)), draw(st.sampled_from([*INTEGERS, *FLOATS, "e8m0"]))
    acc = draw(st.sampled_from(["s32", "s16", "u8", "s64", "f32", "f16", "bf16", "f64", "s4", "tf32"]))
    op = draw(st.sampled_from(["+=", "+=", "+=", "-=", "*="]))
    guard = draw(
        st.sampled_from(
            ["", "if 0 <= i + p - 1 < 4:", "if i <= p:", "if i + j > 1 and p != 2:", "if A[0, 0] != 0:", "if r < p:"]
        )
    )
    x = draw(st.sampled_from(["A[i, p]", "A[i, (i + p) % 6]", "A[r, p]", "A[j, p + r]", "A[i, min(i + p, 5)]"]))
    y = draw(st.sampled_from(["B[p, j]", "B[j, p]", "B[p, r]", "B[3 - p, j]", "B[i, p]"]))
    extra = draw(st.sampled_from(["", f" * {acc}(2)", f" * {acc}(i + r)", f" * {acc}(A[0, j])"]))
    init = draw(st.sampled_from(["", "C[i, j] = 0", "C[i, j] = 1"]))
    target = draw(st.sampled_from(["C[i, j]", "C[i, j]", "C[j, i]", "C[i, 0]"]))
    update = f"{target} {op} {acc}({x}) * {acc}({y}){extra}"
    body = [f"            {guard}", f"                {update}"] if guard else [f"            {update}"]
    lines = [f"def f(A: {a}[4, 6], B: {b}[4, 4], C: {acc}[4, 4]):", "    for i, j in grid(4, 4):"]
    lines += [f"        {init}"] if init else []
    return "\n".join([*lines, "        for p, r in grid(4, 2):", *body]) + "\n"
