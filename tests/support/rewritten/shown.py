"""What a counterexample shows, computed by numpy from the text of the term: no code of the interpreter."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

F32 = np.float32


def _rounded(dtype: Any) -> Any:
    return lambda x: dtype(x)


FUNCTIONS: dict[str, Any] = {
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "sqrt": np.sqrt, "round": np.round, "abs": np.abs,
    "max": np.maximum, "min": np.minimum, "f32": F32, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
}  # fmt: skip


def values(term: str, shown: dict[str, Any]) -> np.ndarray:
    """The term at each reference and data."""
    found = np.zeros((2, 2))
    for r, reference in enumerate(shown["references"]):
        for c, data in enumerate(shown["data"]):
            found[r, c] = value(term, reference | data)
    return found


def value(term: str, elements: dict[str, float]) -> float:
    """A term of the language, as Python, with numbers for its elements."""
    names: dict[str, Any] = {}
    for k, (element, number) in enumerate(sorted(elements.items(), key=lambda item: -len(item[0]))):
        names[f"x{k}_"] = F32(number)
        term = term.replace(element, f"x{k}_")
    term = re.sub(r"(?<![\w.])(\d+\.?\d*(?:e-?\d+)?)(?![\w.])", r"f32(\1)", term)
    with np.errstate(all="ignore"):
        return float(eval(term, {"__builtins__": {}}, FUNCTIONS | names))
