"""Which products of a loop's body may be issued before their turn, or be waited for after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from autosched.codegen.tree.kernel import WORKERS, Assign, AsyncCalls, For, IntrinsicCall, Stmt, WaitCalls, statements
from autosched.codegen.tree.uses import used_buffers, used_variables
from autosched.ir.value import Read

PRODUCT_PHASES = 3
"""Its sums are set, it is called, what holds them takes them."""


@dataclass(frozen=True)
class FirstProduct:
    """The first phase of a body where that calls and waits for the end. `calls`: the phase without the wait; `results`:
    the phases that take its sums; `rest`: those behind them."""

    calls: For
    results: Sequence[Stmt]
    rest: Sequence[Stmt]

    @staticmethod
    def of(body: Sequence[Stmt]) -> FirstProduct | None:
        """None where there is no such phase (registers that it fills would be filled anew while calls read them), where
        others touch its sums, or where it reads what they write."""
        phase, *others = body
        if not (isinstance(phase, For) and _waits(phase)):
            return None
        before = phase.body[:-1]
        if not all(isinstance(s, AsyncCalls) for s in before):
            return None
        sums = _sums(before)
        taking = [n for n, s in enumerate(others) if sums & used_buffers((s,))]
        if not taking or taking != list(range(len(taking))):
            return None
        if (written(others) | _sums(others)) & used_buffers(before):
            return None
        return FirstProduct(replace(phase, body=before), others[: len(taking)], others[len(taking) :])


@dataclass(frozen=True)
class LastProduct:
    """The last product of a body, which adds to what registers hold. `before`: all other phases; `starts`: the one that
    sets its sums to what is held; `calls`: the phase that fills registers and calls, without the wait; `results`: the
    one that holds the sums."""

    before: Sequence[Stmt]
    starts: For
    calls: For
    results: For

    @staticmethod
    def of(body: Sequence[Stmt], loop: str) -> LastProduct | None:
        """None where the last calls are no such product, something else touches the sums, or what stands behind them
        takes part in them."""
        at = max((n for n, s in enumerate(body) if isinstance(s, For) and _waits(s)), default=0)
        product = [s for s in body[max(at - 1, 0) : at + 2] if isinstance(s, For)]
        if len(product) < PRODUCT_PHASES:
            return None
        (starts, calls, results), behind = product, tuple(body[at + 2 :])
        before, sums, held = (*body[: at - 1], *behind), _sums(calls.body), written((results,))
        if _copied(starts) != (held, sums) or _copied(results) != (sums, held) or sums & used_buffers(before):
            return None
        own = used_buffers((starts, calls, results))
        if written((calls,)) & used_buffers((*before, starts, results)):
            return None
        if written(behind) & own or used_buffers(behind) & (written((starts, calls, results)) | sums):
            return None
        if loop in used_variables((starts, results)):
            return None
        return LastProduct(before, starts, replace(calls, body=calls.body[:-1]), results)


def written(body: Iterable[Stmt]) -> set[str]:
    """What assignments set."""
    return {s.buffer for s in statements(tuple(body)) if isinstance(s, Assign)}


def _sums(body: Iterable[Stmt]) -> set[str]:
    """What calls add to."""
    calls = (s for s in statements(tuple(body)) if isinstance(s, IntrinsicCall))
    return {c.operands[c.intrinsic.accumulator.name].buffer for c in calls}


def _waits(phase: For) -> bool:
    """Whether it is one of workers, which ends where its calls have ended."""
    return phase.kind in WORKERS and bool(phase.body) and phase.body[-1] == WaitCalls(0)


def _copied(phase: For) -> tuple[set[str], set[str]] | None:
    """What a phase reads and sets that only copies; None of any other."""
    assigns = [s for s in statements((phase,)) if not isinstance(s, For)]
    values = [s.value for s in assigns if isinstance(s, Assign)]
    reads = {v.tensor for v in values if isinstance(v, Read)}
    plain = len(values) == len(assigns) and all(isinstance(v, Read) for v in values)
    return (reads, written((phase,))) if plain else None
