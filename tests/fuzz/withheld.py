"""Pairs of which the instruction overwrites its target where a mask or a length says so, and keeps the rest."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from .pairs import Pair, overwriting


def withheld(rng: Random) -> Pair:
    """A pair of `overwriting` whose instruction is under a mask, a length or both, said by a condition around it or by
    a choice; the program has a mask of its own now and then, on one of its axes, or none."""
    made = overwriting(rng)
    head, *loops, core = made.semantics.splitlines()
    axes = dict(re.findall(r"for (\w) in range\((\d+)\)", made.semantics))
    kind = rng.choice(("mask", "length", "length", "both"))
    tests, extra = list[str](), list[str]()
    if kind != "length":
        masked = rng.sample(list(axes), rng.randint(1, len(axes)))
        extra.append(f"w: b1[{', '.join(axes[x] for x in masked)}]")
        tests.append(f"w[{', '.join(masked)}] {rng.choice(('!= 0', '!= 0', '> 0', '== 0'))}")
    if kind != "mask":
        counted = rng.choice(list(axes))
        extra.append("vl: u32[1]")
        lane = f"u32({counted})"
        less = f"{lane} < vl[0]", f"vl[0] > {lane}", f"{lane} <= vl[0]", f"{lane} > vl[0]"
        tests.append(rng.choice((less[0], less[0], less[0], less[1], less[1], *less)))
    if rng.random() < 0.1 and (own := re.search(r"a\[[^]]*\]", core)):  # of what it computes with: that is no mask
        tests, extra = [f"{own[0]} > 0"], []
    rng.shuffle(tests)
    indent, (target, value) = core[: len(core) - len(core.lstrip())], core.strip().split(" = ", 1)
    said = " and ".join(tests)
    lines = [f"{indent}if {said}:", f"{indent} {target} = {value}"]
    if rng.random() < 0.5 or not extra:
        lines = [f"{indent}{target} = ({value}) if {said} else {target}"]
    text = [head.replace("(", f"({', '.join([*extra, ''])}", 1), *loops, *lines]
    return replace(made, semantics="\n".join(text), program=_masked(rng, made.program))


def elsewhere(rng: Random) -> Pair:
    """A pair of `overwriting` whose instruction has an operand for elements where its mask is zero; the program has a
    mask of its own, and keeps what its target holds there."""
    made = overwriting(rng)
    while "p[" in made.semantics:
        made = overwriting(rng)
    head, *loops, core = made.semantics.splitlines()
    axes = dict(re.findall(r"for (\w) in range\((\d+)\)", made.semantics))
    masked = rng.sample(list(axes), rng.randint(1, len(axes)))
    indent, (target, value) = core[: len(core) - len(core.lstrip())], core.strip().split(" = ", 1)
    shape = re.search(r"\bc: (\w+\[[^]]*\])", head)
    assert shape is not None
    extra = f"w: b1[{', '.join(axes[x] for x in masked)}], q: {shape[1]}, "
    said = f"w[{', '.join(masked)}] {rng.choice(('!= 0', '!= 0', '> 0', '== 0'))}"
    text = f"{indent}{target} = ({value}) if {said} else q[{target.split('[', 1)[1]}"
    lines = [head.replace("(", f"({extra}", 1), *loops, text]
    return replace(made, semantics="\n".join(lines), program=_masked(rng, made.program))


def _masked(rng: Random, program: str) -> str:
    """The program, half of them under a mask of its own along some of its axes."""
    axes = dict(re.findall(r"for (\w) in range\((\d+)\)", program))
    if rng.random() < 0.5 or not axes:
        return program
    chosen = rng.sample(list(axes), rng.randint(1, len(axes)))
    test = f"W[{', '.join(chosen)}] {rng.choice(('!= 0', '!= 0', '!= 0', '> 0', '== 0'))}"
    if rng.random() < 0.4:  # beside it, a condition on an axis
        axis = rng.choice(list(axes))
        both = [test, f"{axis} {rng.choice(('<', '>='))} {rng.randint(1, int(axes[axis]))}"]
        rng.shuffle(both)
        test = " and ".join(both)
    head, *rest = program.rstrip().splitlines()
    core = rest.pop()
    indent = core[: len(core) - len(core.lstrip())]
    target, op, value = re.split(r" (\+?=) ", core.strip(), maxsplit=1)
    lines = [f"{indent}if {test}:", f"{indent} {target} {op} {value}"]
    if op == "=" and rng.random() < 0.5:
        lines = [f"{indent}{target} = ({value}) if {test} else {target}"]
    head = head.replace("(", f"(W: b1[{', '.join(axes[x] for x in chosen)}], ", 1)
    return "\n".join([head, *rest, *lines, ""])
