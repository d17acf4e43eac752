"""Random elementwise programs for instructions that overwrite their target: averages, saturating sums and the like as
people write them, with awkward subscripts, guards and bounds, alone or one behind the other."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from autosched.ir import parse
from autosched.ir.program import Program

FORMS = {
    "u8": (
        "u8((u16({a}) + u16({b}) + 1) >> 1)", "u8(({b} | {a}) - (({a} ^ {b}) >> 1))", "sat_u8(u16({a}) + u16({b}))",
        "u8(min(u32({a}) + u32({b}), 255))", "sat_u8(s16({a}) - s16({b}))", "u8(max(s32({a}) - s32({b}), 0))",
        "{a} if {a} < {b} else {b}", "max({b}, {a})", "({a} - {b} if {a} > {b} else 0)",
        "u8((u16({a}) + u16({b})) >> 1)", "({a} & {b}) + (({a} ^ {b}) >> 1)", "u8(abs(s16({a}) - s16({b})))",
    ),
    "s8": (
        "s8(min(max(s16({a}) + s16({b}), -128), 127))", "sat_s8(s32({a}) - s32({b}))", "min({a}, {b})", "abs({a})",
        "s8(max(min(s16({a}) + s16({b}), 127), -127))", "{b} if {b} >= {a} else {a}", "-{a} if {a} < 0 else {a}",
        "{a} if {p} != 0 else {b}", "{b} if {a} < 0 else {a}",
    ),
    "s16": (
        "s16((s32({a}) * s32({b}) + 16384) >> 15)", "s16((s32({a}) * s32({b})) >> 16)", "sat_s16(s32({a}) + s32({b}))",
        "s16((((s32({a}) * s32({b})) >> 14) + 1) >> 1)", "abs({b})", "max({a}, {b})",
        "s16((s32({a}) * s32({b})) >> 15)", "sat_s16((s32({a}) * s32({b}) + 16384) >> 15)",
        "{a} - {b} if {p} != 0 else {a}", "max({a}, {b}) - min({a}, {b})",
        "sat_s16((s64({a}) * 32768 + s64({b}) * s64({b}) + 16384) >> 15)",
    ),
    "u16": ("u16((u32({a}) + u32({b}) + 1) >> 1)", "u16((u32({a}) * u32({b})) >> 16)", "sat_u16(s32({a}) - s32({b}))"),
    "s32": ("max({a}, {b})", "abs({a})", "{a} if {a} < {b} else {b}", "{a} + {b} if {p} != 0 else {b}"),
    "u32": ("min({a}, {b})",),
    "s64": ("max({a}, {b})",),
    "f32": ("{a} + {b}", "{a} - {b}", "max({a}, {b})", "{a} * {b}", "{a} * {b} if {p} > 0 else {a}"),
}  # fmt: skip
PACKED = {
    "f16": (
        "{a} + {b}", "{b} - {a}", "{a} * {b}", "max({a}, {b})", "min({b}, {a})", "abs({a})", "-{a}",
        "fma({a}, {b}, {a})", "fma({b}, {b}, {a})", "max(fma({a}, {a}, {b}), 0.0)", "{a} * {b} + {a}",
        "f16(f32({a}) + f32({b}))", "f16(f32({a}) * f32({b}))", "f16(f32({a}) * f32({b}) + f32({a}))",
    ),
    "s16": ("{a} + {b}", "max({a}, {b})", "{a} if {a} < {b} else {b}", "sat_s16(s32({a}) + s32({b}))"),
    "u16": ("{b} + {a}", "max({a}, {b})", "min({a}, {b})", "u16(u32({a}) + u32({b}))"),
}
PACKED["bf16"] = tuple(form.replace("f16", "bf16") for form in PACKED["f16"])
"""Of two numbers in a register of a GPU's thread."""
NARROWER = {"s16": ("s8", "u8"), "s32": ("s16", "s8", "u8"), "s64": ("s32",), "u16": ("u8",), "u32": ("u16", "u8")}
NARROWER |= {"f32": ("bf16", "bf16", "f16")}
EXTENTS = (1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 96, 130)
MOST_POINTS = 9000


def random_program(seed: int, most: int = MOST_POINTS) -> Program:
    return parse(_Writer(Random(f"written {seed}"), most).text(), filename="f.py")


def packed_program(seed: int, most: int = MOST_POINTS) -> Program:
    """One for instructions on two numbers of 16 bits."""
    return parse(_Writer(Random(f"packed {seed}"), most, PACKED).text(), filename="f.py")


class _Writer:
    """A program under way: `tensors` are parameters with their types, `inner` lines that declare intermediates."""

    def __init__(self, rng: Random, most: int, forms: Mapping[str, tuple[str, ...]] = FORMS) -> None:
        self.rng, self.forms = rng, forms
        self.extents: dict[str, int] = {}
        for name in "yxz"[: rng.choice((1, 1, 2, 2, 2, 3))]:
            self.extents[name] = rng.choice([n for n in EXTENTS if n <= max(1, most)])
            most //= self.extents[name]
        self.place = ", ".join(self.extents)
        self.dtype = rng.choice([*FORMS, "u8", "u8", "s8", "s16"] if forms is FORMS else [*forms])
        self.tensors: dict[str, str] = {}
        self.inner: list[str] = []
        self.lines: list[str] = []

    def text(self) -> str:
        count = self.rng.choice((1, 1, 1, 2, 3))
        shape = ", ".join(map(str, self.extents.values()))
        for number in range(count):
            declared = f"{self.dtype}[{shape}]"
            if number + 1 < count and self.rng.random() < 0.7:
                self.inner.append(f"C{number}: {declared}")
            else:
                self.tensors[f"C{number}"] = declared
            self.stage(number)
        if self.forms is FORMS and self.dtype in NARROWER and self.rng.random() < 0.4:
            narrow = self.rng.choice(NARROWER[self.dtype])
            self.tensors["D"] = f"{narrow}[{shape}]"
            convert = narrow if self.dtype == "f32" else f"sat_{narrow}"
            self.nest(list(self.extents), {}, [], f"D[{self.place}] = {convert}(C{count - 1}[{self.place}])")
        parameters = ", ".join(f"{name}: {declared}" for name, declared in self.tensors.items())
        return "\n".join([f"def f({parameters}):", *(f"    {line}" for line in (*self.inner, *self.lines))]) + "\n"

    def stage(self, number: int) -> None:
        """Sometimes with a bound or a guard; what these leave out then holds a number that shows."""
        rng, guards, names = self.rng, list[str](), list(self.extents)
        elements = {o: self.element(f"{o.upper()}{number}", number, guards) for o in "ab"}
        form, place = rng.choice(self.forms[self.dtype]), f"C{number}[{self.place}]"
        operand = rng.choice("ab")
        if (own := rng.random() < 0.2) or rng.random() < 0.15:  # in place, or with a number or a run-time scalar
            self.tensors.pop(f"{operand.upper()}{number}", None)
            written = rng.choice(("0", "3", "100"))
            elements[operand] = place if own else rng.choice((f"{self.dtype}({written})", "g"))
            if elements[operand] == "g":
                self.tensors["g"] = self.dtype
        if "{p}" in form:  # a mask
            elements["p"] = self.element(f"P{number}", 0, guards, "b1")
        for operand in "ab":
            if "{" + operand + "}" not in form:
                self.tensors.pop(f"{operand.upper()}{number}", None)
        rng.shuffle(names)
        bounds = {n: str(self.extents[n]) for n in names}
        if len(names) > 1 and rng.random() < 0.1 and self.extents[names[0]] <= self.extents[names[1]]:
            bounds[names[1]] = rng.choice((f"{names[0]} + 1", f"{names[0]}, {self.extents[names[1]]}"))
        if rng.random() < 0.3:
            guards.append(self.guard())
        begun = own and (f"C{number}" not in self.tensors or rng.random() < 0.3)
        if begun or (not own and (guards or bounds != {n: str(self.extents[n]) for n in names})):
            self.nest(list(self.extents), {}, [], f"{place} = {rng.choice((0, 1, 77))}")
        self.nest(names, bounds, guards, f"{place} = {form.format(**elements)}")

    def nest(self, names: list[str], bounds: dict[str, str], guards: list[str], core: str) -> None:
        heads = [f"for {n} in range({bounds.get(n, self.extents[n])}):" for n in names]
        heads += [f"if {g}:" for g in guards]
        self.lines += ["    " * depth + line for depth, line in enumerate((*heads, core))]

    def element(self, tensor: str, number: int, guards: list[str], dtype: str = "") -> str:
        """One of an earlier result, or of a new tensor: turned, of a row, shifted, strided, or with a border."""
        rng = self.rng
        if number and rng.random() < 0.6:
            return f"C{rng.randrange(number)}[{self.place}]"
        names = list(self.extents)
        if rng.random() < 0.2:
            rng.shuffle(names)
        if len(names) > 1 and rng.random() < 0.2:
            names.pop(rng.randrange(len(names)))
        parts, shape = [], []
        for n in names:
            extent = self.extents[n]
            match rng.choice(("plain",) * 9 + ("shift", "stride", "turned", "border", "half")):
                case "shift":
                    part, size = f"{n} + 2", extent + 3
                case "stride":
                    part, size = f"2 * {n} + 1", 2 * extent
                case "turned":
                    part, size = f"{extent - 1} - {n}", extent
                case "border" if extent > 3:
                    part, size = f"{n} - 1", extent - 2
                    guards.append(f"0 <= {n} - 1 < {extent - 2}")
                case "half":
                    part, size = f"{n} // 2", -(-extent // 2)
                case _:
                    part, size = n, extent
            parts.append(part)
            shape.append(str(size))
        self.tensors[tensor] = f"{dtype or self.dtype}[{', '.join(shape)}]"
        return f"{tensor}[{', '.join(parts)}]"

    def guard(self) -> str:
        rng = self.rng
        y, z = rng.choice(list(self.extents)), rng.choice(list(self.extents))
        n = rng.randint(0, self.extents[y] + self.extents[z] - 2)
        forms = (
            f"{y} < {rng.randint(1, self.extents[y])}", f"{y} + {z} <= {n}", f"{y} <= {z}", f"({y} + {z}) % 2 == 0",
            f"{y} >= {rng.randint(0, self.extents[y] - 1)}", f"{y} != {z} + 1",
        )  # fmt: skip
        return rng.choice(forms)
