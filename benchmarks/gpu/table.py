"""The tables of docs/cuda.md, from a JSON file of results: geometric means by group, type and library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

GROUPS = {"squares": "squares", "conv": "ResNet-50 convolutions", "rows": "programs that memory limits"}
CHAINS = ("decode", "feed_forward", "weights", "blocks", "sparse", "experts", "norms")
ORDER = ("squares", "llm", "conv", "mma", "tiers", "rows", "attention", "shapes", *CHAINS)
TYPES = ("bf16", "f16", "e4m3", "s8", "f32")
LIBRARIES = ("cublas", "cublaslt", "cudnn", "torch")
COLUMNS = (
    ("cuBLAS, cuBLASLt, cuDNN, PyTorch", LIBRARIES),
    ("cuBLASLt, precise", ("cublaslt precise",)),
    ("Triton", ("triton",)),
    ("TileLang", ("tilelang",)),
    ("FlashAttention 2", ("flash attention",)),
    ("PyTorch, compiled", ("torch compiled",)),
    ("cuBLASLt, scales of rows", ("cublaslt rows",)),
    ("cuSPARSELt", ("cusparselt",)),
    ("PyTorch, 4 bits", ("torch int4",)),
    ("a copy of as many bytes", ("copy",)),
)


def results(path: Path) -> list[dict[str, Any]]:
    """The cases of a file."""
    found: list[dict[str, Any]] = json.loads(path.read_text())["cases"]
    return found


def group_of(name: str) -> tuple[str, str]:
    """What a case is a row of, and its type: products of language models go by their rows."""
    group, dtype, label = name.split("/")
    rows = label.split("x")[0]
    shown = {"1": "1 row"}.get(rows, f"{rows} rows") if group == "llm" else GROUPS.get(group, group)
    if group in CHAINS:
        kind, *sizes = label.rsplit("_", 1) if "_" in label else ("", label)
        shown = f"{group.replace('_', '-')}, {f'{kind}, ' if kind else ''}{sizes[0]}".replace("_", " ")
    if group == "attention":
        shown = f"attention, {label.split('_')[0]}, d = {label.rsplit('x', 1)[1]}"
    return shown, dtype


def table(cases: Iterable[dict[str, Any]]) -> str:
    """Markdown: a line a group and type, with geometric means of each library's time over ours and of how many cases
    where that is not all of them; then what was run, and what failed."""
    cases = sorted(cases, key=_place)
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for case in cases:
        grouped.setdefault(group_of(case["name"]), []).append(case)
    used = [(shown, names) for shown, names in COLUMNS if any(_ratio(c, names) for c in cases)]
    lines = [" | ".join(["|", *(shown for shown, _ in used), "each, of the library", "TFLOP/s, TOP/s |"])]
    lines.append("|" + "---|" * (len(used) + 3))
    for (group, dtype), held in grouped.items():
        means = [_mean([_ratio(c, names) for c in held]) for _, names in used]
        each = ", ".join(f"{r:.2f}" for c in held if (r := _ratio(c, LIBRARIES)))
        speeds = sorted(c["tops"] for c in held if "tops" in c)
        shown = " to ".join(dict.fromkeys(f"{s:,.{0 if s >= 100 else 1}f}" for s in (*speeds[:1], *speeds[-1:]))) or "–"
        lines.append(" | ".join([f"| {group}, {dtype}", *means, each or "–", f"{shown} |"]))
    return "\n".join([*lines, "", *_said(cases)])


def _ratio(case: dict[str, Any], names: Sequence[str]) -> float | None:
    """Of the first of these libraries that was measured."""
    found: dict[str, float] = case.get("ratios", {})
    return next((found[n] for n in names if n in found), None)


def _mean(ratios: Sequence[float | None]) -> str:
    there = [r for r in ratios if r is not None]
    of = f" ({len(there)})" if 0 < len(there) < len(ratios) else ""
    return f"{geometric_mean(there):.2f}{of}" if there else "–"


def _place(case: dict[str, Any]) -> tuple[Any, ...]:
    """Groups in `ORDER`, rows by their number, types in `TYPES`, then by size."""
    group, dtype, label = case["name"].split("/")
    sizes = [int(n) for n in label.split("x") if n.isdigit()]
    return ORDER.index(group), sizes[:1] if group == "llm" else [], TYPES.index(dtype), sizes


def _said(cases: Sequence[dict[str, Any]]) -> list[str]:
    failed: dict[str, int] = {}
    for case in cases:
        for kind, count in case["failed"].items():
            failed[kind] = failed.get(kind, 0) + count
    free = [c for c in cases if not c["name"].startswith(("mma/", "tiers/"))]
    behind = {c["name"]: r for c in free if (r := _ratio(c, LIBRARIES))}
    shown = ", ".join(f"{n} {r:.2f}" for n, r in sorted(behind.items(), key=lambda at: at[1]) if round(r, 2) < 1)
    whole = sum(bool(c.get("whole")) for c in cases)
    trials = sum(c["trials"] for c in cases)
    return [
        f"{len(cases)} cases of {trials:,} trials; failed: {failed or 'none'}; {whole} with whole outputs compared.",
        f"Slower than the library: {shown or 'none'}.",
    ]
