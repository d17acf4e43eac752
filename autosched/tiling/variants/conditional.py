"""What tuning does with mappings that carry conditions: refuse them, check at run time and fall back, or assume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autosched.errors import UsageError
from autosched.ir.data import known_values
from autosched.ir.nodes import Assume
from autosched.ir.oracle.assumed import assumed_range
from autosched.ir.program import Program
from autosched.tensorize.conditions.origin import at_origin
from autosched.tensorize.match_types import Mapping as Match1
from autosched.tensorize.match_types import Match
from autosched.tiling.plans.fallback import checkable
from autosched.tiling.plans.plan import Plan

MODES = ("refuse", "guard", "assume")


def usable_as(mapping: Match1, mode: str) -> Match1 | None:
    """The mapping as it may be planned: without conditions as it is; else None (refused), with its conditions (to be
    checked), or with these among its certificate's assumptions."""
    if not mapping.conditions:
        return mapping
    program = mapping.program
    mapping = replace(mapping, conditions=tuple(at_origin(program, c) for c in mapping.conditions))
    # Known values that do not discharge a condition break it in every call.
    broken = any(c.assume is not None and known_values(program, c.assume.subject) for c in mapping.conditions)
    if mode == "refuse" or broken or not checkable(program, mapping):
        return None
    if mode == "guard":
        return mapping
    texts = tuple(f"assumed: {c.text}" for c in mapping.conditions)
    certificate = replace(mapping.certificate, assumptions=(*mapping.certificate.assumptions, *texts))
    return replace(mapping, conditions=(), assumed=mapping.conditions, certificate=certificate)


def candidates_of(matches: Sequence[Match], mode: str = "refuse") -> dict[str, list[Match1]]:
    """The mappings that may be planned, by stage. Portable instructions only stand in for a stage that no instruction
    of the machine's own fits without conditions."""
    by_stage: dict[str, list[Match1]] = {}
    for found in matches:
        for mapping in found.mappings:
            usable = None if mapping.adapters else usable_as(mapping, mode)
            if usable is not None:
                by_stage.setdefault(found.stage, []).append(usable)
    for stage, mappings in by_stage.items():
        free = [m for m in mappings if not m.conditions]
        native = [m for m in free if not m.intrinsic.portable]
        by_stage[stage] = [*(native or free), *(m for m in mappings if m.conditions and not m.intrinsic.portable)]
    return by_stage


def compatible(program: Program, plans: Sequence[Plan]) -> list[Plan]:
    """The plans, in order, without those that ask of some tensor what leaves it fewer than two values with what plans
    before them ask: all are measured on one data set. A check that admits one sign only (weights of -128 to 0) is for
    data that hardly occur, and goes where another plan checks the same tensor and admits both."""
    both = {c.subject for p in plans for c in (*p.guards, *p.granted) if not _one_sided(program, c)}
    plans = [p for p in plans if not any(c.subject in both and _one_sided(program, c) for c in (*p.guards, *p.granted))]
    ranges: dict[str, tuple[float, float]] = {}
    kept = []
    for plan in plans:
        asked: dict[str, tuple[float, float]] = {}
        for c in (*plan.guards, *plan.granted):
            low, high = asked.get(c.subject) or ranges.get(c.subject) or _assumed(program, c.subject)
            asked[c.subject] = (
                low if c.low is None else max(low, c.low),
                high if c.high is None else min(high, c.high),
            )
        if all(low < high for low, high in asked.values()):
            ranges |= asked
            kept.append(plan)
    return kept


def _one_sided(program: Program, condition: Assume) -> bool:
    """Whether it leaves values of one sign of a tensor that has both."""
    low, high = _assumed(program, condition.subject)
    positive = condition.high is None or condition.high > 0
    negative = condition.low is None or condition.low < 0
    return low < 0 < high and not (positive and negative)


def _assumed(program: Program, tensor: str) -> tuple[float, float]:
    low, high = assumed_range(program, tensor)
    least, most = program.tensors[tensor].dtype.limits
    return least if low is None else max(low, least), most if high is None else min(high, most)


def check_mode(mode: str) -> str:
    """The mode; UsageError for an unknown one."""
    if mode not in MODES:
        raise UsageError(f"--conditions {mode}: not a way to treat conditions", hint=f"one of {', '.join(MODES)}")
    return mode
