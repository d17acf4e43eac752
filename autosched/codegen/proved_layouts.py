"""What is proved of one schedule's shared memory: of the layouts that it has, and of where its kernels have them."""

from __future__ import annotations

from autosched.codegen.cuda.printer import print_cuda
from autosched.codegen.cuda.shared_memory.proofs import prove_placed
from autosched.codegen.lower import lower
from autosched.errors import AutoschedError
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps.gpu.shared_proofs import LayoutProof, prove_shared


def prove_schedule(plan: Plan, row: int, *, all_cases: bool = False) -> list[LayoutProof]:
    """Nothing for other targets than CUDA's; `all_cases` takes the layouts of every legal row of the plan instead,
    which z3 may be some seconds at."""
    if plan.target.backend.printer != "cuda":
        return []
    found = [p for part in plan.tensor_parts for p in prove_shared(part, plan.space, None if all_cases else row)]
    kernel = lower(plan, plan.space.schedule(row))
    try:
        printed = print_cuda(kernel, plan.target).memory
    except AutoschedError:  # an instruction that can be simulated only
        printed = {}
    for memory in printed.values():
        if memory.buffers:
            found += prove_placed(kernel, memory, plan.target.limits.get("shared_bytes", 0))
    return found
