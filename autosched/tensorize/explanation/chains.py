"""A mapping as chains of coordinate transformations, one an operand: how an element of the program's tensor gets its
place in the instruction's operand, the way one would explain im2col.

Read a chain from the tensor inwards. Each step gives its *inner* coordinates (those nearer to the tensor) as
expressions of its outer ones, so that the chain composes to the address of what a lane holds:

    embed      dimensions of the tensor are walked by sums of axes (`X.1 = y + r - 1`)
    gather     … through an array of indices
    pass       dimensions are axes
    pad        fills (zeros, as a rule) outside a guard, or past the end up to whole tiles; a stored operand skips them
    replicate  the element is the same along these axes
    merge      several axes become one number
    split      a number becomes a tile and a lane of it
    window     the operand's own coordinates are sums of lanes
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from autosched.ir.value import Literal, Read, blank
from autosched.logic import Const, Int, Var
from autosched.tensorize.addresses.axes import index_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_index, show_leaf
from autosched.tensorize.match_types import Mapping
from autosched.tensorize.matcher.staging import in_words
from autosched.tensorize.reduction.update import update_of_intrinsic


@dataclass(frozen=True, slots=True)
class Transform:
    """`inner` coordinates as expressions of the `outer` ones (None: a data-dependent subscript)."""

    kind: str
    text: str
    inner: tuple[tuple[str, Int | None], ...] = ()
    outer: tuple[str, ...] = ()


def chains(mapping: Mapping) -> dict[str, tuple[Transform, ...]]:
    """The chain of each operand, from the program's tensor to the lanes of a tile."""
    update = update_of_intrinsic(mapping.intrinsic)
    reads = {r.tensor: r for r in (*mapping.intrinsic.stage.reads, *update.operands, update.target)}
    facts = StageFacts(mapping.program, mapping.stage)
    return {o: tuple(_chain(mapping, facts, reads[o], read)) for o, read in mapping.operands.items()}


def chains_json(mapping: Mapping) -> dict[str, list[dict[str, Any]]]:
    """`{operand: [{kind, text, inner, outer}]}`, `inner` as `name = expression`."""
    return {
        o: [
            {
                "kind": t.kind,
                "text": t.text,
                "inner": [n if e is None else f"{n} = {e}" for n, e in t.inner],
                "outer": list(t.outer),
            }
            for t in chain
        ]
        for o, chain in chains(mapping).items()
    }


def _chain(mapping: Mapping, facts: StageFacts, operand: Read, read: Read) -> list[Transform]:
    found = [*_dimensions(facts, read), *_guards(mapping, operand, read)]
    coordinates = [x for x in mapping.axes if x in index_axes(operand.index)]
    past = f"{fill_in_words(mapping, operand.tensor)} past the end"
    if operand.tensor == mapping.intrinsic.accumulator.name:
        past = "what lies past is not stored"
    moved = index_axes(read.index)
    same = [y for x in coordinates for y in mapping.axes[x] if y not in moved]
    if same:
        text = f"{show_leaf(read)} is the same element for every {', '.join(same)}"
        found.append(Transform("replicate", text, (), tuple(same)))
    for x in coordinates:
        found += _axis(mapping, facts, x, past)
    compound = [str(p) for p in operand.index if isinstance(p, Int) and not isinstance(p, Var | Const)]
    if compound:
        lanes = tuple(f"{x}_lane" for x in coordinates)
        text = f"{operand.tensor} is indexed by {', '.join(compound)}: lanes of one sum share an element (proved)"
        found.append(Transform("window", text, (), lanes))
    return found


def _dimensions(facts: StageFacts, read: Read) -> list[Transform]:
    plain: list[tuple[str, Int | None]] = []
    sums: list[tuple[str, Int | None]] = []
    gathered: list[tuple[str, Int | None]] = []
    said = []
    for d, part in enumerate(read.index):
        name = f"{read.tensor}.{d}"
        if not isinstance(part, Int):
            gathered.append((name, None))
            said.append(show_index(part))
        else:
            (plain if isinstance(part, Var) else sums).append((name, part))
    found = []
    if plain:
        text = ", ".join(f"dimension {n} is {e}" for n, e in plain)
        found.append(Transform("pass", text, tuple(plain), tuple(str(e) for _, e in plain)))
    if sums:
        axes = tuple(a for a in facts.extents if a in index_axes(tuple(e for _, e in sums if e is not None)))
        walked = f", walked by {', '.join(axes)}" if axes else ""
        text = ", ".join(f"dimension {n} is {e}" for n, e in sums) + walked
        found.append(Transform("embed", text, tuple(sums), axes))
    if gathered:
        axes = tuple(a for a in facts.extents if a in index_axes(read.index))
        text = ", ".join(f"dimension {n} is {e}" for (n, _), e in zip(gathered, said, strict=True))
        found.append(Transform("gather", text + ", read from memory", tuple(gathered), axes))
    return found


def _guards(mapping: Mapping, operand: Read, read: Read) -> list[Transform]:
    guards = mapping.guards.get(operand.tensor, ())
    if not guards:
        return []
    fill, fails = fill_in_words(mapping, operand.tensor, "zero"), " and ".join(show_leaf(g) for g in guards)
    text = f"{fill} in place of {show_leaf(read)} where {fails} fails"
    return [Transform("pad", text)]


def fill_in_words(mapping: Mapping, operand: str, zero: str = "zeros") -> str:
    """What an operand holds where the program has no element: `zero`, or a number."""
    fill = fill_of(mapping, operand)
    return in_words(fill) if fill.value else zero


def fill_of(mapping: Mapping, operand: str) -> Literal:
    """What an operand holds where the program has no element."""
    return mapping.fills.get(operand) or blank(mapping.intrinsic.operands[operand].dtype)


def _axis(mapping: Mapping, facts: StageFacts, x: str, past: str) -> list[Transform]:
    """One axis of the instruction: fused program axes to a number, padded, split into tiles and lanes."""
    fused = mapping.axes[x]
    extent, rounded = mapping.padding[x]
    size = {a.name: a.extent for a in mapping.intrinsic.axes}[x]
    tile, lane = f"{x}_tile", f"{x}_lane"
    if not fused:
        return [Transform("pad", f"{x} has extent 1 and is padded to {size}: {past}", (), (lane,))]
    name = f"{x}_all"
    lower = {y: facts.ranges[y][0] for y in fused}
    found = []
    if len(fused) == 1 and not lower[fused[0]]:
        name = fused[0]
    elif len(fused) == 1:
        (y,) = fused
        found.append(Transform("embed", f"{y} counts from {lower[y]}", ((y, Var(name) + lower[y]),), (name,)))
    else:
        inner = []
        for n, y in enumerate(fused):
            stride = prod(facts.extents[z] for z in fused[n + 1 :])
            digit = Var(name) // stride if stride > 1 else Var(name)
            inner.append((y, (digit % facts.extents[y] if n else digit) + lower[y]))
        sizes = " × ".join(str(facts.extents[y]) for y in fused)
        text = f"{', '.join(fused)} ({sizes}) become one number {name} of {extent}"
        found.append(Transform("merge", text, tuple(inner), (name,)))
    if extent != rounded:
        text = f"{name} from {extent} to {rounded}: {past}"
        found.append(Transform("pad", text, (), (name,)))
    if not set(fused) <= facts.exact:
        short = ", ".join(y for y in fused if y not in facts.exact)
        found.append(Transform("pad", f"{short} may end before its greatest extent: {past}", (), (name,)))
    tiles = f"{rounded // size} tile{'' if rounded == size else 's'} of {size} lanes"
    found.append(Transform("split", f"{name} into {tiles}", ((name, Var(tile) * size + Var(lane)),), (tile, lane)))
    return found
