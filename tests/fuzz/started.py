"""Pairs of which the instruction's sum starts from an operand of its own or from zero, or which adds an operand to what
it computes; and whether what was made of it does the same."""

from __future__ import annotations

from random import Random
from typing import Any

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.programs.started import with_start
from autosched.tensorize.tied import tied

from .pairs import Instruction, Pair, instruction, program, semantics
from .plain import Memory, runner


def started(rng: Random) -> Pair:
    """The start is said beside the sum, around it, or of a temporary that is copied at the end; now and then of another
    element, or too early or too late."""
    made = _fit(rng)
    text = semantics(made)
    kind = rng.choice(("from", "zero"))
    kind = "tied" if not made.reduction and made.combine != "sat" and rng.random() < 0.7 else kind
    said = _tied(rng, made, text) if kind == "tied" else _with_start(rng, made, text, kind)
    floats = made.accumulator == "f32"
    numerics = rng.choice(("{}", "{accumulate: sequential}", "{accumulate: unordered}")) if floats else "{}"
    numerics = "{}" if kind == "tied" else numerics
    text = program(rng, made)
    text = crowded(text) if rng.random() < 0.2 else text
    return Pair(said, numerics, text, rng.choice(("bitwise", *["reassociated"] * 4)))


def crowded(text: str) -> str:
    """The program with another statement beside the last one, which counts how often that runs."""
    *lines, last = text.rstrip("\n").splitlines()
    lines[0] = lines[0].replace("(", "(W: s32[1], ", 1)
    indent = last[: len(last) - len(last.lstrip())]
    return "\n".join([*lines, f"{indent}W[0] += 1", last, ""])


def written_out(rng: Random) -> Pair:
    """A sum that is written out over the elements of its operands, and overwrites its target."""
    made = instruction(rng)
    while made.written == "loop":
        made = instruction(rng)
    text = semantics(made).replace("] += ", "] = ")
    if rng.random() < 0.2:  # one term has another sign
        text = " - ".join(text.rsplit(" + ", 1))
    return Pair(text, "{}", program(rng, made), "reassociated", whole=True)


def _fit(rng: Random) -> Instruction:
    while True:
        made = instruction(rng)
        if made.written == "loop" and made.combine != "=":
            return made


def _with_start(rng: Random, made: Instruction, text: str, kind: str) -> str:
    head, *rest = text.splitlines()
    loops, core = rest[:-1], rest[-1]
    shape = _shape(made)
    index = [p[0][1] for p in made.index["c"]] or ["0"]
    other = list(index)
    if rng.random() < 0.15:
        rng.shuffle(other)
    held = "t" if rng.random() < 0.3 else "c"
    start = f"e[{', '.join(other)}]" if kind == "from" else rng.choice(("0", "0", "0", "0", "1"))
    core = core.replace("c[", f"{held}[")
    own = list(index)
    if rng.random() < 0.12:  # another element's start is written in this turn
        rng.shuffle(own)
        start = start.replace(f"[{', '.join(other)}]", f"[{', '.join(own)}]")
    first, last = f"{held}[{', '.join(own)}] = {start}", f"c[{', '.join(index)}] = t[{', '.join(index)}]"
    depth = len(made.spatial) if rng.random() < 0.5 else 0
    if rng.random() < 0.06:
        depth = len(loops)
    body = [*loops, core]
    less = int(rng.random() < 0.08)  # not from end to end
    around = [f"{' ' * (n + 1)}for {x} in range({made.extents[x] - less}):" for n, x in enumerate(made.spatial)]

    def apart(statement: str) -> list[str]:
        return [*around, " " * (len(around) + 1) + statement]

    if depth == 0:
        body = [*apart(first), *body]
    else:
        body.insert(depth, " " * (depth + 1) + first)
    if held == "t":
        inside = depth == len(made.spatial) and rng.random() < 0.5
        body += [" " * (depth + 1) + last] if inside else apart(last)
        body.insert(0, f" t: {made.accumulator}[{shape}]")
    if kind == "from":
        head = head.replace("(", f"(e: {made.accumulator}[{shape}], ", 1)
    return "\n".join([head, *body])


def _tied(rng: Random, made: Instruction, text: str) -> str:
    """The one update of each element with an operand in place of what it held."""
    head, *loops, core = text.splitlines()
    index = [p[0][1] for p in made.index["c"]] or ["0"]
    other = list(index)
    if rng.random() < 0.15:
        rng.shuffle(other)
    target, own = f"c[{', '.join(index)}]", f"e[{', '.join(other)}]"
    indent, said = core[: len(core) - len(core.lstrip())], core.strip()
    for op in "+-":
        if said.startswith(f"{target} {op}= "):
            said = f"{target} = {own} {op} ({said.removeprefix(f'{target} {op}= ')})"
            break
    else:
        said = f"{target} = " + said.removeprefix(f"{target} = ").replace(target, own)
    head = head.replace("(", f"(e: {made.accumulator}[{_shape(made)}], ", 1)
    return "\n".join([head, *loops, indent + said])


def _shape(made: Instruction) -> str:
    return ", ".join(str(made.extents[p[0][1]]) for p in made.index["c"]) or "1"


def start_differs(text: str, intrinsic: Intrinsic, number: Any) -> str | None:
    """What an instruction's sum with its start computes, against the form of it that adds to its target. `number` makes
    an element of a type. None: the same, or there is no such form."""
    written = parse(text)
    known = with_start(written)
    forms: list[tuple[str | None, Program]] = []
    if known.start is not None or known.from_zero:
        forms.append((known.start, intrinsic.program))
    elif intrinsic.from_zero:
        forms.append((None, intrinsic.program))
    elif (sums := tied(intrinsic)) is not None:
        forms.append((next(iter(set(intrinsic.operands) - set(sums.operands))), sums.program))
    for start, form in forms:
        target = form.stages[0].assign.tensor
        memory: Memory = {
            n: {k: number(t.dtype) for k in _keys(t.extents)} for n, t in written.tensors.items() if not t.intermediate
        }
        here = {n: dict(e) for n, e in memory.items() if n in form.tensors}
        zero = 0.0 if form.tensors[target].dtype.is_float else 0
        here[target] = dict(memory[start]) if start is not None else dict.fromkeys(memory[target], zero)
        there = {n: dict(e) for n, e in memory.items()}
        there |= {n: {} for n, t in written.tensors.items() if t.intermediate}
        try:
            runner(written)(there)
        except KeyError:  # an element of a temporary that nothing wrote
            return f"{text}\nwas taken for {form}"
        runner(form)(here)
        if repr(here[target]) != repr({k: there[target][k] for k in here[target]}):
            return f"{text}\nis no {form}"
    return None


def _keys(extents: tuple[int, ...]) -> list[tuple[int, ...]]:
    keys: list[tuple[int, ...]] = [()]
    for n in extents:
        keys = [(*k, i) for k in keys for i in range(n)]
    return keys
