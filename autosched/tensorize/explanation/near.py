"""Near misses: among many answers, those that got furthest, and many refusals in few lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from autosched.tensorize.explanation.text import axes_in_words
from autosched.tensorize.match_types import REASON_CODES, VERDICTS, Match

_NAMES = 3
_REASONS = 12


def far(m: Match) -> tuple[int, int, int]:
    """How far an answer is from a match: verdict, reason code, how much of it is wrong."""
    if m.reason is None:
        return VERDICTS.index(m.verdict), 0, 0
    return VERDICTS.index(m.verdict), -REASON_CODES.index(m.reason.code), m.reason.distance


def ranked(found: Iterable[Match]) -> list[Match]:
    """Matches first, then conditional ones, then refusals by how far they got; bigger instructions before smaller."""
    return sorted(found, key=lambda m: (*far(m), -m.intrinsic.operations))


def near(asked: Match, others: Iterable[Match], most: int = 4) -> list[Match]:
    """Answers on other intrinsics for the same stage that are nearer than the one asked for, one a semantics."""
    kept: list[Match] = []
    seen = set()
    writes = not asked.intrinsic.accumulates  # no sum is nearer to an instruction that overwrites, nor the reverse
    alike = (o for o in others if o.mappings or o.intrinsic.accumulates != writes)
    nearer = ranked(o for o in alike if o.stage == asked.stage and far(o) < far(asked))
    for m in sorted(nearer, key=lambda o: (o.verdict == "no", o.intrinsic.portable)):
        if len(kept) == most:
            break
        if m.intrinsic.governed and any(k.mappings and k.intrinsic.isa == m.intrinsic.isa for k in kept):
            continue  # with a mask of ones it is what those are
        kind = tuple(o.dtype.name for o in m.intrinsic.operands.values()), m.verdict, m.intrinsic.isa
        if kind not in seen:
            seen.add(kind)
            kept.append(m)
    return kept


def near_lines(found: Sequence[Match]) -> list[str]:
    """`near: x86/vpdpwssd.zmm matches with i ← j; k ← p`."""
    lines = []
    for m in found:
        text = f"  near: {m.intrinsic.name} "
        if m.mappings:
            first = m.mappings[0]
            text += f"matches with {axes_in_words(first.axes)}"
            text += f", by adapters ({', '.join(first.adapters)})" if first.adapters else ""
            text += f", if {' and '.join(c.text for c in first.conditions)}" if first.conditions else ""
        elif m.reason is not None:
            text += f"gets further: {m.reason.code}: {m.reason.message}"
        else:
            text += "is not decided"
        lines.append(text)
    return lines


def near_json(found: Sequence[Match]) -> list[dict[str, Any]]:
    """`[{intrinsic, verdict, code}]`."""
    return [
        {"intrinsic": m.intrinsic.name, "verdict": m.verdict, "code": m.reason.code if m.reason else None}
        for m in found
    ]


def refusals(found: Iterable[Match]) -> list[str]:
    """Refusals with one reason in one line, those that got furthest first."""
    groups: dict[tuple[str, str, str], list[Match]] = {}
    for m in ranked(m for m in found if m.reason is not None):
        assert m.reason is not None
        told = m.reason.message.replace(m.intrinsic.name, "it")
        if m.reason.code == "DTYPE":  # one line for all types: the nearest is the first
            told = next((t for s, c, t in groups if (s, c) == (m.stage, "DTYPE")), told)
        groups.setdefault((m.stage, m.reason.code, told), []).append(m)
    lines = []
    for (stage, code, message), members in list(groups.items())[:_REASONS]:
        names = ", ".join(m.intrinsic.name for m in members[:_NAMES])
        more = f" and {len(members) - _NAMES} more" if len(members) > _NAMES else ""
        others = "" if code != "DTYPE" or len(members) == 1 else " (the first; the others' types differ too)"
        lines.append(f"stage {stage} on {names}{more}: no\n  FAIL {code}: {message}{others}")
    left = list(groups.values())[_REASONS:]
    if left:
        lines.append(f"… and {sum(map(len, left))} more, refused for {len(left)} other reasons; -i GLOB asks for some")
    return lines
