"""What is said of a mapping's numerics: the contract, the error bound with its formula, where it is exact."""

from __future__ import annotations

import math
from typing import Any

from autosched.tensorize.match_types import Mapping


def numerics_json(mapping: Mapping) -> dict[str, Any]:
    """Keys beside `numerics` of a mapping of floats; {} where nothing rounds differently."""
    known = mapping.certificate
    found: dict[str, Any] = {}
    if not mapping.intrinsic.accumulator.dtype.is_float:
        return found
    found["contract"] = str(mapping.intrinsic.numerics)
    if (bound := known.bound) is not None:
        factor = bound.factor if math.isfinite(bound.factor) else str(bound.factor)
        found["error"] = {
            "bound": str(bound),
            "formula": f"{bound.formula} · {bound.magnitudes}",
            "K": bound.terms,
            "factor": factor,
        }
    if (exact := known.exact) is not None:
        factors = dict(zip(exact.names, exact.factors, strict=True)) if any(exact.factors) else {}
        found["exact"] = {"partial_sums_below": 2**exact.bits, "K": exact.terms, "factors": factors, "text": str(exact)}
    return found


def numerics_lines(mapping: Mapping) -> list[str]:
    """The same, to read."""
    known = mapping.certificate
    lines = [f"  numerics: {mapping.numerics}"]
    if known.error_bound:
        lines[0] += f"; error at most {known.error_bound}"
    if (bound := known.bound) is not None:
        formula = f"{bound.formula} · {bound.magnitudes}"
        lines[0] += f" = {bound.factor:.3g} · {bound.magnitudes}"
        lines.append(f"    as a function of K: {formula}, here K = {bound.terms:,}")
        lines.append(f"    contract: {mapping.intrinsic.numerics}")
    if known.exact is not None:
        lines.append(f"    exact for {known.exact}")
    return lines
