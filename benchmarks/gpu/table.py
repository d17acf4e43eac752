"""The tables of docs/cuda.md, from a JSON file of results: geometric means by group, type and library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

GROUPS = {"squares": "squares", "conv": "ResNet-50 convolutions", "rows": "programs that memory limits"}
ORDER = ("squares", "llm", "conv", "mma", "tiers", "rows")
TYPES = ("bf16", "f16", "e4m3", "s8", "f32")
LIBRARIES = ("cublas", "cublaslt", "cublaslt precise", "cudnn", "torch", "triton", "tilelang")


def results(path: Path) -> list[dict[str, Any]]:
    """The cases of a file."""
    found: list[dict[str, Any]] = json.loads(path.read_text())["cases"]
    return found


def group_of(name: str) -> tuple[str, str]:
    """What a case is a row of, and its type: products of language models go by their rows."""
    group, dtype, label = name.split("/")
    rows = label.split("x")[0]
    shown = {"1": "1 row"}.get(rows, f"{rows} rows") if group == "llm" else GROUPS.get(group, group)
    return shown, dtype


def table(cases: Iterable[dict[str, Any]]) -> str:
    """Markdown: a line a group and type, a column a library; then what was run, and what failed."""
    cases = sorted(cases, key=_place)
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for case in cases:
        grouped.setdefault(group_of(case["name"]), []).append(case)
    used = [n for n in LIBRARIES if any(n in c.get("ratios", {}) for c in cases)]
    lines = [" | ".join(["|", *used, "each, of the first |"]), "|" + "---|" * (len(used) + 2)]
    for (group, dtype), held in grouped.items():
        means = [_mean([c["ratios"][n] for c in held if n in c.get("ratios", {})]) for n in used]
        first = next((n for n in used if any(n in c.get("ratios", {}) for c in held)), "")
        each = ", ".join(f"{c['ratios'][first]:.2f}" for c in held if first in c.get("ratios", {}))
        lines.append(" | ".join([f"| {group}, {dtype}", *means, f"{each or '–'} |"]))
    return "\n".join([*lines, "", *_said(cases)])


def _place(case: dict[str, Any]) -> tuple[Any, ...]:
    """Groups in `ORDER`, rows by their number, types in `TYPES`, then by size."""
    group, dtype, label = case["name"].split("/")
    sizes = [int(n) for n in label.split("x") if n.isdigit()]
    return ORDER.index(group), sizes[:1] if group == "llm" else [], TYPES.index(dtype), sizes


def _mean(ratios: Sequence[float]) -> str:
    return f"{geometric_mean(ratios):.2f}" if ratios else "–"


def _said(cases: Sequence[dict[str, Any]]) -> list[str]:
    failed: dict[str, int] = {}
    for case in cases:
        for kind, count in case["failed"].items():
            failed[kind] = failed.get(kind, 0) + count
    free = [c for c in cases if c.get("ratios") and not c["name"].startswith(("mma/", "tiers/"))]
    behind = {c["name"]: next(iter(c["ratios"].values())) for c in free}
    shown = ", ".join(f"{n} {r:.2f}" for n, r in sorted(behind.items(), key=lambda at: at[1]) if round(r, 2) < 1)
    whole = sum(bool(c.get("whole")) for c in cases)
    trials = sum(c["trials"] for c in cases)
    return [
        f"{len(cases)} cases of {trials:,} trials; failed: {failed or 'none'}; {whole} with whole outputs compared.",
        f"Slower than the library: {shown or 'none'}.",
    ]
