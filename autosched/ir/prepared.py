"""What is known before the run beyond `const` parameters: conversions of them, and sums of their elements.

Such intermediates are computed once, outside the timed call. What counts is narrow on purpose: the contract lets const
data be re-laid out, padded, converted or reduced to compensation terms, not be computed with.
"""

from __future__ import annotations

from collections.abc import Mapping

from autosched.ir.nodes import Assign, Statement, Tensor
from autosched.ir.stages import stages_of
from autosched.ir.value import Cast, Literal, Read, Scalar, Select, Unary, Value, is_value, reads, walk
from autosched.logic import Bool


def prepared_tensors(body: tuple[Statement, ...], tensors: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Intermediates whose values follow from `const` parameters alone, in the order in which they are computed.

    A tensor is one of them where a single top-level statement writes it, as one stage, and nothing else, before any
    other mentions it, and each of its assignments converts or adds up elements of one known tensor; floats are
    converted, negated and set beside zeros only.
    """
    found: list[str] = []
    known = {n for n, t in tensors.items() if t.const and not t.intermediate}
    mentioned: set[str] = set()
    written_by = [{a.tensor for a in assigns(stmt)} for stmt in body]
    for k, stmt in enumerate(body):
        (target, *others) = written_by[k] or {""}
        alone = not others and all(target not in w for n, w in enumerate(written_by) if n != k)
        tensor = tensors.get(target)
        if tensor is not None and alone and target not in mentioned and _follows(stmt, tensor, known):
            found.append(target)
            known.add(target)
        mentioned |= {r.tensor for a in assigns(stmt) for r in reads(a.value)} | written_by[k]
    return tuple(found)


def assigns(stmt: Statement) -> list[Assign]:
    """All assignments of a statement, in order."""
    return [stmt] if isinstance(stmt, Assign) else [a for inner in stmt.body for a in assigns(inner)]


def _follows(stmt: Statement, tensor: Tensor, known: set[str]) -> bool:
    if not tensor.intermediate or not _plain_guards(stmt) or len(stages_of((stmt,))) != 1:
        return False
    for assign in assigns(stmt):
        sources = {r.tensor for r in reads(assign.value)}
        if assign.op not in ("=", "+=", "-=") or len(sources) > 1 or not sources <= known:
            return False
        if any(isinstance(v, Scalar) for v in walk(assign.value)) or any(is_value(i) for i in assign.index):
            return False
        if not tensor.dtype.is_integer and not (assign.op == "=" and _conversion(assign.value)):
            return False
    return True


def _conversion(value: Value) -> bool:
    """Whether nothing but conversions and signs lie around one element, or a zero stands in its place where a formula
    of the loops says so."""
    if isinstance(value, Select) and isinstance(value.condition, Bool):
        return isinstance(value.other, Literal) and not value.other.value and _conversion(value.then)
    return isinstance(value, Read) or (isinstance(value, Cast | Unary) and _conversion(value.operand))


def _plain_guards(stmt: Statement) -> bool:
    """Whether no guard depends on data."""
    if isinstance(stmt, Assign):
        return True
    condition = getattr(stmt, "condition", None)
    return (condition is None or not is_value(condition)) and all(_plain_guards(inner) for inner in stmt.body)
