"""A recorded space with a simpler clock than ours, so that what a model adds to a clock is seen where the clock does
not do all the work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autosched.store.recorded_space import RecordedSpace

KNOWN = ("compute", "memory", "mma", "dram")
"""What the simple clock knows: seconds of computing and of moving data from and to memory, on a CPU and on a GPU. It
has no caches, shared memory, copies, loads beside arithmetic, waits or overheads."""


def with_roofline(recording: RecordedSpace) -> RecordedSpace:
    """The rows with the greater of these terms for a clock, and with these alone for a model to learn from;
    as it is where it has no clock."""
    plans = []
    for plan in recording.plans:
        terms = {name: plan.terms[name] for name in KNOWN if name in plan.terms}
        known = {**terms, "total": np.max(list(terms.values()), axis=0)} if terms else {}
        plans.append(replace(plan, terms=known))
    return replace(recording, plans=tuple(plans))
