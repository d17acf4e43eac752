"""Instructions whose operands are windows (`a[i + k]`), on an accelerator of their own and as vectors of a CPU."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import product

import numpy as np

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.logic import Int, evaluate
from autosched.machine.target import Memory, Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import load
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.planner.nests import nest_or_reason
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.conditional import candidates_of

CORE = Target(
    "windowed",
    "windowed",
    frozenset({"windowed"}),
    1,
    1e9,
    (
        Memory("sums", 64 << 10, 1e11, holds=("accumulators",)),
        Memory("pad", 64 << 10, 1e11, holds=("inputs",)),
        Memory("dram", 1 << 30, 1e10, shared_by="device"),
    ),
)
"""An accelerator with two scratchpads."""


@dataclass(frozen=True)
class Window:
    """`body` accumulates into `c`; `axes` are its loops, `c`'s first."""

    a: str
    w: str
    c: str
    axes: dict[str, int]
    at: str
    by: str
    to: str
    wide: str = "s32"
    narrow: str = "s8"

    def semantics(self) -> str:
        loops = f"for {', '.join(self.axes)} in grid({', '.join(map(str, self.axes.values()))})"
        product_ = f"{self.wide}(a[{self.at}]) * {self.wide}(w[{self.by}])"
        if self.wide == self.narrow:
            product_ = f"a[{self.at}] * w[{self.by}]"
        head = f"a: {self.narrow}[{self.a}], w: {self.narrow}[{self.w}], c: {self.wide}[{self.c}]"
        return f"def f({head}):\n {loops}:\n  c[{self.to}] += {product_}\n"


WINDOWS = {
    "fir": Window("7", "4", "4", {"i": 4, "k": 4}, "i + k", "k", "i"),
    "unread": Window("8", "8", "4", {"i": 4, "k": 3}, "i + k + 1", "k", "i"),  # elements that no step reads
    "strided": Window("8", "4", "3", {"i": 3, "k": 4}, "2 * i + k", "k", "i"),
    "holes": Window("12", "2", "4", {"i": 4, "k": 2}, "3 * i + k", "k", "i"),
    "dilated": Window("8", "3", "4", {"i": 4, "k": 3}, "i + 2 * k", "k", "i"),
    "flipped": Window("6", "3", "4", {"i": 4, "k": 3}, "i + 2 - k", "k", "i"),
    "bank": Window("6", "3, 4", "4, 4", {"i": 4, "o": 4, "k": 3}, "i + k", "k, o", "i, o"),
    "engine": Window(
        "4, 6, 4", "3, 3, 4, 8", "2, 4, 8", {"y": 2, "x": 4, "o": 8, "r": 3, "s": 3, "k": 4},
        "y + r, x + s, k", "r, s, k, o", "y, x, o",
    ),
    "engine_2": Window(
        "5, 7, 4", "3, 3, 4, 4", "2, 3, 4", {"y": 2, "x": 3, "o": 4, "r": 3, "s": 3, "k": 4},
        "2 * y + r, 2 * x + s, k", "r, s, k, o", "y, x, o",
    ),
    "floats": Window("6", "3", "4", {"i": 4, "k": 3}, "i + k", "k", "i", "f32", "f32"),
    "groups": Window("2", "4, 4", "4", {"i": 4, "k": 4}, "k // 2", "k, i", "i"),
    "groups_of_rows": Window("2, 4", "4, 4", "4", {"i": 4, "k": 4}, "k // 2, i", "k, i", "i"),
}  # fmt: skip


def instruction(name: str) -> Intrinsic:
    """The accelerator's instruction."""
    body = WINDOWS[name].semantics().replace("\n", "\n      ")
    head = f"isa: windowed\nrequires: [windowed]\nintrinsics:\n  - name: {name}\n    scope: core\n"
    (found,) = load(f"{head}    semantics: |\n      {body}\n")
    return found


def in_vectors(name: str) -> Intrinsic:
    """The same as vectors of LLVM and of C, each step of its own."""
    plain = instruction(name)
    flat = {n: int(np.prod(o.shape)) for n, o in plain.operands.items()}
    axes = [a.name for a in plain.stage.axes]
    steps = [dict(zip(axes, point, strict=True)) for point in product(*(range(a.extent) for a in plain.stage.axes))]
    index = {r.tensor: r.index for r in (*plain.stage.reads, plain.stage.target)}

    def at(operand: str, step: dict[str, int]) -> int:
        parts = [int(evaluate(p, step)) for p in index[operand] if isinstance(p, Int)]
        return int(np.ravel_multi_index(parts, plain.operands[operand].shape))

    ir = {"s8": "i8", "s32": "i32", "f32": "float"}
    c = {"s8": "signed char", "s32": "unsigned", "f32": "float"}
    narrow, wide = WINDOWS[name].narrow, WINDOWS[name].wide
    lines, sums, last = [], dict[int, str](), "{c}"
    for n, step in enumerate(steps):
        a, w, to = (at(o, step) for o in "awc")
        for o, e in (("a", a), ("w", w)):
            lines.append(f"%{{{o}{n}}} = extractelement <{flat[o]} x {ir[narrow]}> {{{o}}}, i32 {e}")
            if wide == "s32":
                lines.append(f"%{{{o}{n}w}} = sext i8 %{{{o}{n}}} to i32")
        tail = "w" if wide == "s32" else ""
        mul, add = ("mul", "add") if wide == "s32" else ("fmul", "fadd")
        lines.append(f"%{{p{n}}} = {mul} {ir[wide]} %{{a{n}{tail}}}, %{{w{n}{tail}}}")
        lines.append(f"%{{o{n}}} = extractelement <{flat['c']} x {ir[wide]}> {last}, i32 {to}")
        lines.append(f"%{{s{n}}} = {add} {ir[wide]} %{{o{n}}}, %{{p{n}}}")
        made = f"insertelement <{flat['c']} x {ir[wide]}> {last}, {ir[wide]} %{{s{n}}}, i32 {to}"
        last = f"%{{v{n}}}"
        lines.append(f"{last} = {made}" if n + 1 < len(steps) else made)
        term = f"({c[wide]})({{a}})[{a}] * ({c[wide]})({{w}})[{w}]"
        sums[to] = f"{sums.get(to, f'({{c}})[{to}]')} + {term}"
    dtypes = {"a": narrow, "w": narrow, "c": wide}
    sizes = {o: n * (1 if dtypes[o] == "s8" else 4) for o, n in flat.items()}
    vectors = {o: f"{c[dtypes[o]]} __attribute__((vector_size({n})))" for o, n in sizes.items()}
    emit = {"llvm": "\n".join(lines) + "\n"}
    if all(n & (n - 1) == 0 for n in flat.values()):
        emit["c"] = f"({vectors['c']}){{{{ {', '.join(sums[e] for e in range(flat['c']))} }}}}"
    operands = {n: dataclasses.replace(o, registers={"c": vectors[n]}) for n, o in plain.operands.items()}
    named = dataclasses.replace(plain, name=f"portable/{name}", isa="portable", scope="thread", requires=frozenset())
    return dataclasses.replace(named, emit=emit, operands=operands)


def windowed_plans(text: str, intrinsic: Intrinsic, target: Target = CORE) -> tuple[Program, list[Plan], list[str]]:
    """The program, its plans on the instruction, and why other mappings have none."""
    program = parse(text, filename="f.py")
    found = match(program, [intrinsic])
    reasons = [nest for m in found[0].mappings if isinstance(nest := nest_or_reason(m, target), str)]
    plans = make_plans(program, target, candidates_of(found), 1)
    return program, [p for p in plans if p.tensor_parts], reasons


def line_text(
    n: int = 10,
    taps: int = 4,
    stride: int = 1,
    dilation: int = 1,
    pad: int = 0,
    guard: str = "",
    channels: int = 0,
    reverse: bool = False,
    dtypes: tuple[str, str] = ("s8", "s32"),
) -> str:
    """A sum over a window along a line of `n` results, the border left out, and what else `guard` leaves out."""
    size = max(1, (n - 1) * stride + (taps - 1) * dilation + 1 - 2 * pad)
    at = f"{stride} * x + {dilation} * {f'({taps - 1} - r)' if reverse else 'r'} - {pad}"
    guards = [f"0 <= {at} < {size}"] * (pad > 0) + [guard] * bool(guard)
    narrow, wide = dtypes
    c, loops = (", c", "r, c in grid({0}, {1})") if channels else ("", "r in range({0})")
    shape = f", {channels}" if channels else ""
    x, w = f"X[{at}{c}]", f"W[r{c}]"
    term = f"{x} * {w}" if narrow == wide else f"{wide}({x}) * {wide}({w})"
    inside = f"            if {' and '.join(guards)}:\n    " if guards else ""
    return (
        f"def f(X: {narrow}[{size}{shape}], W: {narrow}[{taps}{shape}], C: {wide}[{n}]):\n"
        f"    for x in range({n}):\n        C[x] = 0\n"
        f"        for {loops.format(taps, channels)}:\n{inside}            C[x] += {term}\n"
    )


def group_text(n: int, k: int, guard: str = "", by_groups: bool = False, rows: bool = False) -> str:
    """A sum whose elements have a factor for each two of them, of each result or the same for all."""
    p, h = ("2 * g + q", "g") if by_groups else ("p", "p // 2")
    loops = f"g, q in grid({k // 2}, 2)" if by_groups else f"p in range({k})"
    inside = f"            if {guard}:\n    " if guard else ""
    groups, at = (f"{-(-k // 2)}, {n}", f"{h}, x") if rows else (f"{-(-k // 2)}", h)
    return (
        f"def f(S: s8[{groups}], W: s8[{k}, {n}], C: s32[{n}]):\n"
        f"    for x in range({n}):\n        C[x] = 0\n"
        f"        for {loops}:\n{inside}            C[x] += s32(S[{at}]) * s32(W[{p}, x])\n"
    )


def engine_text(h: int, w: int, ci: int, co: int, stride: int, pad: int) -> str:
    """A 3x3 convolution of int8."""
    ho, wo = ((n + 2 * pad - 3) // stride + 1 for n in (h, w))
    at = [f"{stride} * {x} + {r} - {pad}" for x, r in (("y", "r"), ("x", "s"))]
    inside = f"            if 0 <= {at[0]} < {h} and 0 <= {at[1]} < {w}:\n    " if pad else ""
    return (
        f"def conv(X: s8[{h}, {w}, {ci}], W: const[s8[3, 3, {ci}, {co}]], Y: s32[{ho}, {wo}, {co}]):\n"
        f"    for y, x, o in grid({ho}, {wo}, {co}):\n        Y[y, x, o] = 0\n"
        f"        for r, s, c in grid(3, 3, {ci}):\n{inside}"
        f"            Y[y, x, o] += s32(X[{at[0]}, {at[1]}, c]) * s32(W[r, s, c, o])\n"
    )
