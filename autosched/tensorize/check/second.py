"""The second description: compares the vendor's pseudocode, written as a program, with the semantics.

Both are run on the same operands first (the semantics under its numerics contract, the pseudocode as it stands), which
shows inputs where they differ. Where none are found both are unrolled
to formulas and proved equal, lane by lane: integers bit for bit (structure, exhaustion, z3); floats in the order
written, or where the contract leaves the order open as the same terms in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autosched.ir.program import Program
from autosched.ir.value import Arith, Call, Cast, Read, Value, map_value, walk
from autosched.logic import Const
from autosched.tensorize.body.equal import canonical, prove_equal
from autosched.tensorize.body.wide import widened
from autosched.tensorize.check.batched import run_batched
from autosched.tensorize.check.unroll import NotUnrolled, renumbered, unroll
from autosched.tensorize.check.values import cases, moderate, same_bits
from autosched.tensorize.intrinsic import Intrinsic, Operand
from autosched.tensorize.numerics.model import issue

TIMEOUT_MS = 2000
MOST_POINTS = 1 << 17
"""Points of all cases together, for large tiles."""
FEWEST_CASES = 4
ORDERLESS_CASES = 48
MOST_PROVED = 1 << 11
"""Points of a tile that is proved, not only run."""
Values = npt.NDArray[np.generic]
Arrays = dict[str, Values]


@dataclass(frozen=True)
class Compared:
    """`status` is `proved`, `passed` (all cases agree), or `failed` with the arrays (cases, *shape) that tell."""

    status: str
    detail: str
    arrays: Arrays | None = None
    semantics: Values | None = None
    second: Values | None = None


def compare(intrinsic: Intrinsic, seed: int) -> Compared:
    """The semantics against the pseudocode, which the intrinsic must have."""
    assert intrinsic.pseudocode is not None
    arrays = _cases(intrinsic, seed)
    first = issue(intrinsic, arrays)
    second = second_run(intrinsic, arrays)
    if not _same(first, second, intrinsic):
        return Compared("failed", "", arrays, first, second)
    proved, how = _proof(intrinsic)
    if proved:
        return Compared("proved", how)
    return Compared("passed", f"{len(first):,} cases agree; {how}")


def _same(first: Values, second: Values, intrinsic: Intrinsic) -> bool:
    return bool(same_bits(first, second, intrinsic.accumulator.dtype).all())


def second_run(intrinsic: Intrinsic, arrays: Arrays) -> Values:
    """The accumulator, of shape (cases, *operand shape), after the pseudocode ran on arrays of operand shape."""
    program = intrinsic.pseudocode
    assert program is not None
    held = {}
    images = register_images(intrinsic)
    for name, image in images.items():
        found = arrays[name] if image is None else arrays[name][(slice(None), *image)]
        held[name] = np.ascontiguousarray(found).view(program.tensors[name].dtype.numpy)
    written = intrinsic.accumulator
    result: Values = run_batched(program, held, written.name).view(written.dtype.numpy)
    image = images[written.name]
    if image is None:
        return result
    out = np.empty((len(result), *written.shape), result.dtype)
    out[(slice(None), *image)] = result
    return out


def register_images(intrinsic: Intrinsic) -> dict[str, npt.NDArray[np.int64] | None]:
    """Where a parameter of the pseudocode is the registers ([lanes, elements of each], or [elements]) rather than the
    operand: the operand's coordinates of each register element, shape (dimensions, *register shape); else None.

    Where a fragment has the shape of its operand, it is the registers if another parameter is.
    """
    program = intrinsic.pseudocode
    assert program is not None
    shapes = {name: program.tensors[name].extents for name in intrinsic.operands}
    others = any(shapes[n] != o.shape for n, o in intrinsic.operands.items() if o.fragment is not None)
    return {
        name: _image(operand, shapes[name])
        if shapes[name] != operand.shape or (others and operand.fragment is not None)
        else None
        for name, operand in intrinsic.operands.items()
    }


def _image(operand: Operand, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    relation = operand.fragment if operand.fragment is not None else operand.order
    image, _ = relation.points()
    return np.asarray(image).reshape(len(operand.shape), *shape)


def _cases(intrinsic: Intrinsic, seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    if _open_order(intrinsic):
        return _orderless(intrinsic, rng)
    found = cases(intrinsic, rng)
    most = max(FEWEST_CASES, MOST_POINTS // intrinsic.operations)
    count = len(next(iter(found.values())))
    step = -(-count // most)
    return {n: np.ascontiguousarray(a[::step]) for n, a in found.items()}


def _open_order(intrinsic: Intrinsic) -> bool:
    return intrinsic.accumulator.dtype.is_float and intrinsic.numerics.accumulate == "unordered"


def _orderless(intrinsic: Intrinsic, rng: np.random.Generator) -> Arrays:
    """Operands whose sums have one value in any order, so that a difference is one of meaning: integers that add up
    exactly, and single nonzero terms, which keep all their bits."""
    parts: dict[str, list[Values]] = {name: [] for name in intrinsic.operands}
    cases = min(ORDERLESS_CASES, max(FEWEST_CASES, MOST_POINTS // intrinsic.operations))
    for alone in (None, *(o.name for o in intrinsic.inputs)):
        for name, operand in intrinsic.operands.items():
            shape = (cases, *operand.shape)
            if alone is None:
                values = rng.integers(-3, 4, shape).astype(np.float32).astype(operand.dtype.numpy)
            elif operand.written:
                values = np.zeros(shape, operand.dtype.numpy)
            else:
                values = moderate(operand.dtype, shape, rng)
                if name == alone:
                    flat = values.reshape(cases, -1)
                    keep = np.arange(flat.shape[1]) == rng.integers(0, flat.shape[1], (cases, 1))
                    values = np.where(keep, flat, np.zeros_like(flat)).reshape(shape)
            parts[name].append(values)
    return {name: np.concatenate(p) for name, p in parts.items()}


def _proof(intrinsic: Intrinsic) -> tuple[bool, str]:
    """Whether every element of the accumulator is the same formula, and how that was found, or what is open."""
    written = intrinsic.accumulator
    program = intrinsic.pseudocode
    assert program is not None
    if intrinsic.numerics.flushed:
        return False, "not proved: the contract flushes subnormals"
    if intrinsic.operations > 2 * MOST_PROVED:
        return False, "not proved: a large tile"
    try:
        first, second = unroll(intrinsic.program, written.name), unroll(program, written.name)
    except NotUnrolled as why:
        return False, f"not proved: {why}"
    unordered = _open_order(intrinsic)
    methods: set[str] = set()
    known: dict[tuple[Value, ...], str | None] = {}
    for left, right in _pairs(intrinsic, program, first, second):
        pair = one, other = renumbered(left, right)
        if pair not in known:
            known[pair] = _equal(one, other, unordered)
        method = known[pair]
        if method is None:
            return False, f"not proved within {TIMEOUT_MS / 1000:g} s"
        methods.add(method)
    return True, f"both describe the same {len(first):,} elements ({', '.join(sorted(methods))})"


def _pairs(
    intrinsic: Intrinsic, program: Program, first: dict[tuple[int, ...], Value], second: dict[tuple[int, ...], Value]
) -> Iterator[tuple[Value, Value]]:
    """The formulas of each element of the accumulator, both over the operands' coordinates."""
    images = register_images(intrinsic)

    def coordinates(name: str, place: tuple[int, ...]) -> tuple[int, ...]:
        image = images[name]
        return place if image is None else tuple(int(part[place]) for part in image)

    def moved(node: Value) -> Value:
        if not isinstance(node, Read):
            return node
        place = tuple(part.value for part in node.index if isinstance(part, Const))
        dtype = intrinsic.operands[node.tensor].dtype
        read = Read(node.tensor, tuple(Const(n) for n in coordinates(node.tensor, place)), dtype)
        return read if dtype == node.dtype else Cast(read, node.dtype)

    written = intrinsic.accumulator
    for place, value in second.items():
        found = map_value(value, moved)
        yield (
            first[coordinates(written.name, place)],
            found if found.dtype == written.dtype else Cast(found, written.dtype),
        )


def _equal(left: Value, right: Value, unordered: bool) -> str | None:
    """The method by which the two were proved equal; None where they were not."""
    if unordered and _terms(left) == _terms(right):
        return "the same terms in any order"
    pairs = _paired(left, right) if left.dtype.is_integer else None
    methods = set()
    for one, other in pairs or [(left, right)]:
        proof = prove_equal(widened(one), widened(other), TIMEOUT_MS)
        if proof.status != "proved":
            return None
        methods.add(proof.method)
    return " and ".join(sorted(methods)) or "structure"


def _paired(left: Value, right: Value) -> list[tuple[Value, Value]] | None:
    """The terms of two wrapping sums side by side, where what they read tells which belong together; else None."""
    sides = []
    for terms in (_terms(left), _terms(right)):
        by_reads = {frozenset(v for v in walk(t) if isinstance(v, Read)): t for t in terms}
        if len(by_reads) < terms.total():
            return None
        sides.append(by_reads)
    first, second = sides
    return [(term, second[key]) for key, term in first.items()] if first.keys() == second.keys() else None


def _terms(value: Value) -> Counter[Value]:
    """The terms of a sum, fused or not, as a bag."""
    match value:
        case Arith("+", left, right, _):
            return _terms(left) + _terms(right)
        case Call("fma", (a, b, c), dtype):
            return _terms(c) + Counter([canonical(Arith("*", a, b, dtype))])
    return Counter([canonical(value)])
