"""Files of expected outputs, which the timing worker reads: `NAME.want`, `NAME.tol`, and which boxes they hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

SAMPLES = "samples.json"
"""The file that lists the boxes in `.want` and `.tol`: rows of output, first element there, box. Without it they hold
whole outputs."""


def write_wants(
    folder: Path, kinds: Mapping[str, Any], wants: Mapping[str, Any], tolerances: Mapping[str, Any]
) -> None:
    """`.want` and `.tol` of each output; `kinds` are numpy's types of integers, which are compared as they are."""
    for name, want in wants.items():
        tolerance = tolerances[name]
        kept = kinds[name] if tolerance is None else np.float64
        np.ascontiguousarray(want).astype(kept).tofile(folder / f"{name}.want")
        if tolerance is not None:
            filled = np.broadcast_to(np.asarray(tolerance, np.float64), np.shape(want))
            np.ascontiguousarray(filled).tofile(folder / f"{name}.tol")
