"""How many examples property tests draw: few, and the same each time; `AUTOSCHED_EXAMPLES=2000` draws that many."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("AUTOSCHED_EXAMPLES", "0"))


def examples(few: int, **others: Any) -> settings:
    """Settings of a property test; `others` are hypothesis's own."""
    return settings(
        max_examples=EXAMPLES or few,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **others,
    )
