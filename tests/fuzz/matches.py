"""Searches for wrong matches: random pairs of a program and an instruction, and every mapping that the matcher reports
evaluated in plain Python beside the program.

    python -m tests.fuzz.matches --pairs 20000
    python -m tests.fuzz.matches --first 1234 --pairs 1      one pair again, written out

Integers must agree bit for bit, floats within the bound that the certificate states; what the program does not compute
with is NaN, infinite or huge where the certificate does not say that it must be finite; counterexamples must differ.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

from autosched.errors import AutoschedError
from autosched.ir import parse
from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign
from autosched.ir.program import Program
from autosched.ir.value import Read, added, reads
from autosched.tensorize import Mapping, Match, explain, match
from autosched.tensorize.spec.load import load_text
from autosched.tensorize.spec.programs.started import with_start

from .assumed import assumed
from .elements import in_parts, parts_differ
from .in_place import before_differs, in_place
from .mapped import TooLarge, Wrong, hull, run_mapped
from .pairs import Pair, chosen, governed, overwriting, pair
from .plain import HELPERS, Memory, Writer, assignment, runner
from .scaled import scaled
from .selections import selecting
from .started import start_differs, started, written_out
from .stepwise import differs, stepwise
from .withheld import elsewhere, withheld

MOST_MAPPINGS = 4
SELDOM = 4
"""Seeds for each with a slice, too."""


@dataclass
class Findings:
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[int, str]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)


def check(seed: int, found: Findings, aloud: bool = False) -> None:
    """One pair, and now and then one of whose operands data choose a slice, one that agrees for assumed data alone, one
    of which the instruction overwrites its target, one that reads what it overwrites, three that ask a mask or a
    length, one of which either says in several statements what it does, one whose instruction names elements one by
    one, one that selects them, and one whose sum has a start of its own: what is wrong goes into `found`."""
    rng = Random(seed)
    check_pair(pair(rng), rng, seed, found, aloud)
    if seed % SELDOM == 0:
        rng = Random(f"slices {seed}")
        check_pair(chosen(rng), rng, seed, found, aloud)
        rng = Random(f"assumed {seed}")
        check_pair(assumed(rng), rng, seed, found, aloud)
        rng = Random(f"overwriting {seed}")
        check_pair(overwriting(rng), rng, seed, found, aloud)
        rng = Random(f"in place {seed}")
        check_pair(in_place(rng), rng, seed, found, aloud)
        rng = Random(f"governed {seed}")
        check_pair(governed(rng), rng, seed, found, aloud)
        rng = Random(f"withheld {seed}")
        check_pair(withheld(rng), rng, seed, found, aloud)
        rng = Random(f"elsewhere {seed}")
        check_pair(elsewhere(rng), rng, seed, found, aloud)
        rng = Random(f"steps {seed}")
        check_pair(stepwise(rng), rng, seed, found, aloud)
        rng = Random(f"parts {seed}")
        check_pair(in_parts(rng), rng, seed, found, aloud)
        rng = Random(f"selections {seed}")
        check_pair(selecting(rng), rng, seed, found, aloud)
        rng = Random(f"scales {seed}")
        check_pair(scaled(rng), rng, seed, found, aloud)
        rng = Random(f"started {seed}")
        check_pair(started(rng), rng, seed, found, aloud)
        rng = Random(f"written out {seed}")
        check_pair(written_out(rng), rng, seed, found, aloud)


def check_pair(made: Pair, rng: Random, seed: int, found: Findings, aloud: bool = False) -> list[Match]:
    """What is answered of a pair, which messages call `seed`."""
    if aloud:
        print(made.semantics, made.numerics, made.program, made.level, sep="\n")
    try:
        program = parse(made.program)
        intrinsic = _loaded(made)
    except AutoschedError as e:
        found.counts[f"refused text: {type(e).__name__}"] += 1
        if aloud:
            print(e)
        return []
    written = parse(made.semantics)
    apart = made.texts and intrinsic.program.parameters != written.parameters
    number = lambda dtype: _number(rng, dtype, None, False)  # noqa: E731
    if not apart and (told_apart := start_differs(made.semantics, intrinsic, number)):
        found.wrong.append((seed, told_apart))
    if with_start(written).program != written:
        found.counts["instructions whose sum has a start"] += 1
    elif apart:
        found.counts["instructions that read what they overwrite"] += 1
        if told_apart := before_differs(written, intrinsic.program, number):
            found.wrong.append((seed, told_apart))
    elif intrinsic.program.parameters != written.parameters:
        found.counts["instructions in parts"] += 1
        if told_apart := parts_differ(written, intrinsic.program, made.along, rng):
            found.wrong.append((seed, told_apart))
    elif len(written.stages) > 1:
        found.counts["instructions of several statements"] += 1
        memory = {n: filled(t.extents, lambda d=t.dtype: _number(rng, d, None, False)) for n, t in _given(written)}
        if differs(written, intrinsic.program, memory):
            found.wrong.append((seed, f"the statements of an instruction are not {intrinsic.program}"))
    begun = time.process_time()
    try:
        answers = match(program, [intrinsic], made.level)
    except Exception as e:  # whatever it is, it is one
        found.wrong.append((seed, f"matching raised {type(e).__name__}: {e}"))
        return []
    found.slowest = max(found.slowest, (time.process_time() - begun, seed))
    for answer in answers:
        if aloud:
            print(explain(answer))
        found.counts[answer.verdict + (f" {answer.reason.code}" if answer.reason else "")] += 1
        try:
            if answer.reason is not None:
                counterexample(program, answer, found)
            for mapping in rng.sample(answer.mappings, min(MOST_MAPPINGS, len(answer.mappings))):
                compare(program, mapping, made.level, rng, found)
        except Wrong as e:
            found.wrong.append((seed, str(e)))
        except NotImplementedError as e:
            found.counts[f"not evaluated: {e}"] += 1
    return answers


def _loaded(made: Pair) -> Any:
    body = "".join(f"      {line}\n" for line in made.semantics.splitlines())
    text = f"isa: made\nintrinsics:\n  - name: up\n    semantics: |\n{body}    numerics: {made.numerics}\n"
    text += f"    result: {made.result}\n" if made.result else ""
    text += "    operands: {a: {}, b: {}, c: {}}\n" if made.whole else ""
    if made.texts:
        names = parse(made.semantics).parameters
        text += f"    operands: {{{', '.join(f'{n}: {{register: {{c: v}}}}' for n in names)}}}\n"
        text += f"    emit: {{c: 'f({', '.join(f'{{{n}}}' for n in names)})'}}\n"
    return load_text(text)[0]


def _given(program: Program) -> list[tuple[str, Any]]:
    return [(n, t) for n, t in program.tensors.items() if not t.intermediate]


def compare(program: Program, mapping: Mapping, level: str, rng: Random, found: Findings) -> None:
    """Runs both on the same data; Wrong where they differ by more than is stated."""
    memory = data(program, mapping, rng)
    if memory is None:
        found.counts["conditions not met by any data here"] += 1
        return
    want = copied(memory)
    runner(program)(want)
    got = copied(memory)
    for name, tensor in mapping.program.tensors.items():
        got.setdefault(name, filled(tensor.extents, lambda d=tensor.dtype: 0.0 if d.is_float else 0))
    try:
        run_mapped(mapping, got, rng, mapping.numerics == "bitwise" and mapping.stage.target.dtype.is_float)
    except TooLarge:
        found.counts["too large"] += 1
        return
    except Wrong as e:
        raise Wrong(f"{e}: {told(mapping)}") from None
    except NameError as e:
        raise Wrong(f"the mapped program does not run: {e}: {told(mapping)}") from None
    found.counts["mappings"] += 1
    found.counts["adapted mappings"] += bool(mapping.adapters)
    found.counts["conditional mappings"] += bool(mapping.conditions)
    found.counts["mappings with staged guards"] += bool(mapping.guards)
    for name in program.outputs:
        dtype = program.tensors[name].dtype
        near = bounds(program, mapping, memory) if dtype.is_float else {}
        for element, wanted in want[name].items():
            if not close(wanted, got[name][element], near.get(element, 0.0)):
                raise Wrong(
                    f"{name}{list(element)} is {wanted}, the mapping computes {got[name][element]}"
                    f" (may differ by {near.get(element, 0.0):g}): {told(mapping)}"
                )


def told(mapping: Mapping) -> str:
    guards = {o: [str(g) for g in gs] for o, gs in mapping.guards.items()}
    return (
        f"{mapping.axes}, outside {mapping.outer}, guards {guards}, padded {mapping.padded}, fills {mapping.fills},"
        f" assumes {mapping.certificate.assumptions}, if {[c.text for c in mapping.conditions]},"
        f" adapters {mapping.adapters}"
    )


def close(wanted: Any, got: Any, near: float) -> bool:
    if wanted == got or (wanted != wanted and got != got):
        return True
    if isinstance(wanted, int):
        return False
    if math.isnan(near) or math.isinf(near):
        return True  # the program's own terms overflow
    return abs(wanted - got) <= near


def copied(memory: Memory) -> Memory:
    return {n: dict(t) for n, t in memory.items()}


def filled(extents: tuple[int, ...], number: Any) -> dict[tuple[int, ...], Any]:
    return {key: number() for key in product(*map(range, extents))}


def data(program: Program, mapping: Mapping, rng: Random) -> Memory | None:
    """Arrays for which the mapping's conditions hold; what a float program does not compute with is what nobody would
    wish for. None where a condition speaks of what nobody can pass."""
    limits = gathered(program)
    stated, unsigned = [c.assume for c in mapping.conditions], set[str]()
    if any(s is None for s in stated):
        return None
    passed = (a for a in program.assumptions if a.subject in program.inputs or a.subject not in program.tensors)
    for s in (*passed, *(s for s in stated if s is not None)):
        if s.subject not in program.tensors:
            return None
        if s.subject not in program.inputs:
            raise Wrong(f"a condition on {s.subject}, which the program computes")
        if program.tensors[s.subject].dtype.is_float:
            if (s.low, s.high) != (0, None):
                return None
            unsigned.add(s.subject)
            continue
        low, high = limits.get(s.subject, program.tensors[s.subject].dtype.limits)
        limits[s.subject] = (
            low if s.low is None else max(low, int(s.low)),
            high if s.high is None else min(high, int(s.high)),
        )
    big = rng.random() < 0.15
    memory: Memory = {name: {(): _number(rng, s.dtype, limits.get(name), False)} for name, s in program.scalars.items()}
    for name, tensor in program.tensors.items():
        memory[name] = filled(tensor.extents, lambda d=tensor.dtype, n=name: _number(rng, d, limits.get(n), big))
    for name in unsigned:
        memory[name] = {at: abs(x) for at, x in memory[name].items()}
    if program.stages[0].target.dtype.is_float:
        spoil(program, mapping, memory, rng)
    return memory


def gathered(program: Program) -> dict[str, tuple[int, int]]:
    """What tensors hold that are subscripts of others."""
    found = {}
    for stage in program.stages:
        for read in (*stage.reads, stage.target):
            for part, extent in zip(read.index, program.tensors[read.tensor].extents, strict=True):
                if isinstance(part, Read):
                    found[part.tensor] = 0, extent - 1
    return found


def _number(rng: Random, dtype: DType, limits: tuple[int, int] | None, big: bool) -> Any:
    if dtype.is_integer:
        low, high = limits or dtype.limits
        near = [n for n in (low, high, low + 1, high - 1, 0, 1, -1) if low <= n <= high]
        return rng.choice(near) if rng.random() < 0.4 else rng.randint(low, high)
    if dtype.scale:
        return 2.0 ** (rng.randint(-3, 3) if not big else rng.choice((-127, -60, 0, 60, 127)))
    x = (
        rng.uniform(-4, 4)
        if not big
        else rng.choice((1e-20, 1.0, -2.0, 3e19 if dtype.bits > 16 or dtype.mantissa < 10 else 3e4))
    )
    return HELPERS[dtype.name](x)


def spoil(program: Program, mapping: Mapping, memory: Memory, rng: Random) -> None:
    """Elements that the program never computes with hold anything that the certificate does not exclude."""
    said = [a.split(": ", 1)[-1] for a in mapping.certificate.assumptions if "finite where" in a]
    for name, used in touched(program, memory).items():
        if name in program.scalars:
            continue
        tensor = program.tensors[name]
        if not tensor.dtype.is_float or name not in program.inputs:
            continue
        mine = [a for a in said if f"{name}[" in a]
        greatest = {"f16": 6e4}.get(tensor.dtype.name, 3e38)
        if not mine:
            wild = [math.nan, math.inf, -math.inf, greatest, 0.0]
        elif all(re.match(rf"{name}\[[^]]*\] is finite", a) for a in mine):
            wild = [greatest, -greatest, 100.0, -100.0, 0.0]
        else:  # a factor made of it is said to be finite, wherever it stands
            memory[name] = {key: rng.choice((1.0, 2.0, 0.5)) for key in memory[name]}
            continue
        for key in memory[name]:
            if key not in used:
                memory[name][key] = HELPERS[tensor.dtype.name](rng.choice(wild))


def touched(program: Program, memory: Memory) -> dict[str, set[tuple[int, ...]]]:
    """The elements of each tensor that the program reads."""
    seen: dict[str, set[tuple[int, ...]]] = {n: set() for n in memory}

    class Noting(dict[tuple[int, ...], Any]):
        def __init__(self, name: str, elements: dict[tuple[int, ...], Any]) -> None:
            super().__init__(elements)
            self.name = name

        def __getitem__(self, key: tuple[int, ...]) -> Any:
            seen[self.name].add(key)
            return super().__getitem__(key)

    runner(program)({n: Noting(n, t) for n, t in memory.items()})
    return seen


def bounds(program: Program, mapping: Mapping, memory: Memory) -> dict[tuple[int, ...], float]:
    """How far apart the program's and the mapping's sums may lie: what the certificate states of the mapping's, and
    γ of the program's own, relative to the magnitudes that each element sums."""
    if (numerics := mapping.intrinsic.numerics).bounded:
        share, beside = numerics.relative or 0.0, numerics.absolute or 0.0
        exact, written = copied(memory), mapping.stage.assign.tensor
        written = written if written in program.tensors else program.outputs[0]  # a function of its own
        runner(program)(exact)
        dtype = program.tensors[written].dtype
        unit, least = 2.0 ** -(dtype.mantissa + 1), 2.0 ** (1 - dtype.bias)
        return {k: (share + 8 * unit) * abs(x) + least + beside for k, x in exact[written].items()}
    stated, parted = mapping.certificate.bound, mapping.stage.assign.tensor not in program.tensors
    if mapping.numerics == "bitwise" or stated is None:
        return {}  # nothing but the sign of a zero
    total = copied(memory)
    target = program.outputs[0] if parted else mapping.stage.assign.tensor

    def magnitude(node: Assign) -> str:
        if node.tensor != target:
            return assignment(node)
        w = Writer()
        place = f"M[{node.tensor!r}][{w.key(node.index)}]"
        if node.op == "=" and not any(r.tensor == target for r in reads(node.value)):
            return f"{place} = abs({w.value(node.value)})"
        old = next((r for r in reads(node.value) if r.tensor == target), None)
        if old is None and node.op in ("+=", "-="):  # each part of a sum may be added by itself
            return f"{place} = {place} + " + " + ".join(f"abs({w.value(part)})" for part in added(node.value))
        term = w.value(node.value)
        if old is not None:  # C = fma(a, b, C): what is added, of a zero
            zeroed = Writer(lambda name, key: f"M[{name!r}][{key}]" if name != target else "0.0")
            term = zeroed.value(node.value)
        return f"{place} = {place} + abs({term})"

    for key in total[target]:
        total[target][key] = abs(total[target][key])
    runner(program, None, magnitude)(total)
    unit = 2.0**-24
    terms = math.prod(max(n, 1) for n in hull(program.stage(target))[1].values()) if parted else stated.terms
    own = (terms + 2) * unit * 1.001 * (2 if parted else 1)  # the sum of the parts rounds, too
    # Either may round a product that the other does not, where one is fused.
    return {k: (stated.factor + own + 2 * unit) * s for k, s in total[target].items()}


def counterexample(program: Program, answer: Match, found: Findings) -> None:
    """What is printed must differ; and where it says what the program adds, the program must add that."""
    assert answer.reason is not None
    example = answer.reason.counterexample
    if example is None:
        return
    found.counts["counterexamples"] += 1
    mine, theirs = example["program"], example["intrinsic"]
    if mine == theirs or (mine != mine and theirs != theirs):
        raise Wrong(f"the counterexample does not differ: {example}")
    both = "(?:one step of the program adds|the program writes) (.*), the intrinsic (.*)"
    said = re.fullmatch(both, answer.reason.message)
    if said is None:
        return
    dtype = program.stage(answer.stage).target.dtype
    for text, claimed in zip(said.groups(), (mine, theirs), strict=True):
        try:
            number = worked_out(program, text, dtype, example["inputs"])
        except (AutoschedError, NotImplementedError):
            found.counts["counterexamples not worked out"] += 1
            return
        if not close(number, claimed, 1e-5 * abs(number)):
            raise Wrong(f"{text} is {number} and not {claimed} in the counterexample {example}")


def worked_out(program: Program, text: str, dtype: DType, inputs: dict[str, Any]) -> Any:
    """A term as it is printed, on the elements that are printed."""
    parameters, memory = [f"R: {dtype}[1]"], Memory()
    for k, (leaf, number) in enumerate(sorted(inputs.items(), key=lambda x: -len(x[0]))):
        name = leaf.partition("[")[0]
        if name in program.tensors:
            text = text.replace(leaf, f"X{k}[0]")
            parameters.append(f"X{k}: {program.tensors[name].dtype}[1]")
            memory[f"X{k}"] = {(0,): number}
        elif leaf in program.scalars:
            text = re.sub(rf"\b{leaf}\b", f"X{k}[0]", text)
            parameters.append(f"X{k}: {program.scalars[leaf].dtype}[1]")
            memory[f"X{k}"] = {(0,): number}
        else:
            text = text.replace(leaf, f"X{k}[0] > 0")
            parameters.append(f"X{k}: s8[1]")
            memory[f"X{k}"] = {(0,): int(number)}
    made = parse(f"def f({', '.join(parameters)}):\n for i in range(1):\n  R[i] = {text}\n")
    memory["R"] = {(0,): 0}
    runner(made)(memory)
    return memory["R"][(0,)]


def search(first: int, pairs: int, seconds: float = math.inf, aloud: bool = False, live: bool = False) -> Findings:
    """Checks pairs one after the other, until the processor time is used up. `live`: prints what is wrong at once."""
    found = Findings()
    begun = time.process_time()
    for seed in range(first, first + pairs):
        if time.process_time() - begun > seconds:
            break
        before = len(found.wrong)
        check(seed, found, aloud)
        for at, text in found.wrong[before:] if live else ():
            print(f"WRONG, pair {at}: {text}", flush=True)
        found.counts["pairs"] += 1
        if live and found.counts["pairs"] % 250 == 0:
            spent = time.process_time() - begun
            print(f"{found.counts['pairs']} pairs, {found.counts['mappings']} mappings, {spent:.0f} s", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first pair")
    parser.add_argument("--seconds", type=float, default=math.inf, help="processor time after which it stops")
    asked = parser.parse_args()
    found = search(asked.first, asked.pairs, asked.seconds, asked.pairs == 1, True)
    for what, n in sorted(found.counts.items()):
        print(f"{n:8} {what}")
    print(f"slowest question: {found.slowest[0]:.2f} s of processor time, pair {found.slowest[1]}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
