"""What `--explain` says of stages that read each other's results."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.ir.program import Program
from autosched.ir.rewrites.apart import kept_apart
from autosched.ir.rewrites.verdict import RewriteVerdict


def stages_apart(program: Program, verdicts: Sequence[RewriteVerdict]) -> list[str]:
    """A section on what keeps stages apart; none where none reads another's result."""
    found = kept_apart(program, verdicts)
    return ["\n".join(["stages that read each other's results:", *(f"  {d}" for d in found)])] if found else []
