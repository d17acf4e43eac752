"""Runs loop nests and notes what each instance of a statement touches: the oracle of the dependence tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from autosched.ir import Program
from autosched.ir.nodes import Assign, Guard, Loop
from autosched.ir.nodes import Statement as Node
from autosched.ir.value import Read, Select, Value, reads
from autosched.logic import evaluate

Element = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Instance:
    assign: Assign
    at: dict[str, int]
    reads: frozenset[Element]
    write: Element

    def meets(self, other: Instance) -> bool:
        """One element, at least one write; an accumulation reads what it writes, so that is covered by the writes."""
        return self.write == other.write or self.write in other.reads or other.write in self.reads


def run(body: tuple[Node, ...], at: dict[str, int]) -> Iterator[Instance]:
    for node in body:
        match node:
            case Loop(axis, inner):
                for n in range(evaluate(axis.lower, at), evaluate(axis.upper, at)):
                    yield from run(inner, {**at, axis.name: n})
            case Guard(condition, inner):
                if evaluate(condition, at):  # type: ignore[arg-type]
                    yield from run(inner, at)
            case Assign():
                yield Instance(node, at, frozenset(touched(node.value, at)), element(node.tensor, node.index, at))


def element(tensor: str, index: tuple[object, ...], at: dict[str, int]) -> Element:
    return tensor, tuple(int(evaluate(i, at)) for i in index)  # type: ignore[arg-type]


def touched(value: Value, at: dict[str, int]) -> Iterator[Element]:
    match value:
        case Select(condition, then, other, _):
            yield from touched(then if evaluate(condition, at) else other, at)  # type: ignore[arg-type]
        case Read(tensor, index, _):
            yield element(tensor, index, at)
        case _ if hasattr(value, "left"):
            yield from touched(value.left, at)
            yield from touched(value.right, at)
        case _:
            assert not reads(value)


def owners(program: Program, trace: list[Instance]) -> dict[str, list[tuple[int, Instance]]]:
    """For each stage its instances with their times; an initialisation belongs to the next stage on its tensor."""
    places = list(dict.fromkeys(_assigns(program.body)))
    names: dict[int, str] = {}
    waiting = list(program.stages)
    for place in places:
        stage = next(s for s in waiting if s.assign.tensor == place.assign.tensor)
        names[id(place.assign)] = stage.name
        if stage.assign is place.assign:
            waiting.remove(stage)
    found: dict[str, list[tuple[int, Instance]]] = {s.name: [] for s in program.stages}
    for time, instance in enumerate(trace):
        found[names[id(instance.assign)]].append((time, instance))
    return found


@dataclass(frozen=True, eq=False)
class Place:
    assign: Assign


def _assigns(body: tuple[Node, ...]) -> Iterator[Place]:
    for node in body:
        if isinstance(node, Assign):
            yield Place(node)
        else:
            yield from _assigns(node.body)


def contents(order: list[Instance]) -> dict[Element, int]:
    """Final contents as fingerprints of what they were computed from; accumulation commutes, as integer sums do."""
    memory: dict[Element, int] = {}

    def at(e: Element) -> int:
        return memory.get(e, hash(e))

    for i in order:
        term = hash((i.assign.op, *(at(e) for e in sorted(i.reads))))
        memory[i.write] = term if i.assign.op == "=" else at(i.write) + term
    return memory
