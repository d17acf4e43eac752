"""What `--explain` says of stages that read each other's results."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.ir.program import Program
from autosched.ir.rewrites.apart import Dependence, kept_apart
from autosched.ir.rewrites.verdict import RewriteVerdict


def stages_apart(program: Program, verdicts: Sequence[RewriteVerdict], numerics: str) -> list[str]:
    """A section on what keeps stages apart, what has one answer together; none where none reads another's result."""
    groups: dict[str, list[Dependence]] = {}
    for found in kept_apart(program, verdicts, numerics):
        groups.setdefault(found.answer, []).append(found)
    lines = []
    for answer, members in groups.items():
        if len(members) == 1:
            lines.append(f"  {members[0]}")
        else:
            lines += [f"  {answer}:", *(f"    {m.asked}" for m in members)]
    return ["\n".join(["stages that read each other's results:", *lines])] if lines else []
