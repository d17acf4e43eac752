"""What is proved of one schedule's shared memory: of the layouts that it has, and of where its kernels have them."""

from __future__ import annotations

from autosched.codegen.lower import lower
from autosched.codegen.print_functions import functions_of
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps.gpu.operands.shared_proofs import LayoutProof, prove_shared


def prove_schedule(plan: Plan, row: int, *, all_cases: bool = False) -> list[LayoutProof]:
    """Nothing for targets whose language places no shared memory; `all_cases` takes the layouts of every legal row of
    the plan instead, which z3 may be some seconds at."""
    language = plan.target.backend.language
    placed = functions_of(language).placed if language is not None and plan.target.backend.is_gpu else None
    if placed is None:
        return []
    found = [p for part in plan.tensor_parts for p in prove_shared(part, plan.space, None if all_cases else row)]
    return found + placed(lower(plan, plan.space.schedule(row)), plan.target)
