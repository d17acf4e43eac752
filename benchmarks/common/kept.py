"""Results of `benchmarks.cpu` as git keeps them: rows of several runs, each with the code it was measured with, less
what no table needs (histories of searches, digits that say nothing)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.tables import Row, geometric_mean

SCHEMA = "autosched/benchmarks/cpu/kept/1"
DIGITS = 5
LEFT_OUT = {"": ("share",), "tuned": ("history", "events", "costs_s"), "outcome": ("versions", "cpu")}
ABOUT = ("machine", "versions", "trials")
"""What all rows of a file have in common; their rounds too, but for rows that say another number."""
HEAD = [
    "series", "shapes", "geometric mean", "least (shape)", "share of the limit, least to greatest",
    "of bandwidth, in turn with a plain loop",
]  # fmt: skip


def merged(kept: dict[str, Any] | None, found: dict[str, Any], code: str) -> dict[str, Any]:
    """What is kept with the rows of a file of results, measured with `code` (a revision); a row replaces an older one
    of its key, rows that failed are left out. SystemExit for results of another machine, or of other settings."""
    rows = {row["key"]: row for row in (kept or {}).get("rows", [])}
    for name in ABOUT:
        if kept and kept[name] != found[name]:
            raise SystemExit(f"these results are of other {name} ({found[name]}) than those kept ({kept[name]})")
    rounds = (kept or found)["rounds"]
    more = {"code": code} | ({} if found["rounds"] == rounds else {"rounds": found["rounds"]})
    rows |= {row["key"]: _less(row) | more for row in found["rows"] if row["outcome"] is not None}
    about = {name: found[name] for name in ABOUT} | {"rounds": rounds}
    return {"schema": SCHEMA, **about, "rows": [rows[key] for key in sorted(rows)]}


def write(path: Path, data: dict[str, Any]) -> None:
    """One line a row, so that a difference shows which were measured again."""
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in data["rows"])
    about = json.dumps({k: v for k, v in data.items() if k != "rows"}, indent=1)[:-2]
    path.write_text(f'{about},\n "rows": [\n{rows}\n]}}\n', encoding="utf-8")


def rows_of(data: dict[str, Any]) -> list[Row]:
    """The rows of what is kept."""
    about = {"versions": data["versions"], "cpu": data["machine"]["cpu"]}
    return [
        Row.from_json(row | {"tuned": row["tuned"] | {"history": []}, "outcome": row["outcome"] | about})
        for row in data["rows"]
    ]


def series_table(rows: Sequence[Row]) -> str:
    """Markdown, a line a series, as docs/benchmarks.md has it: ratios are medians against the best peer shape by shape,
    above 1 ours is faster; shares are of the nearer limit, of bandwidth by the plain loop's best pass."""
    series: dict[str, list[Row]] = {}
    for row in rows:
        depthwise = row.case.label.startswith("dw_")
        series.setdefault(f"{'depthwise' if depthwise else row.case.group} {row.case.series}", []).append(row)
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for name, held in sorted(series.items(), key=lambda item: _place(item[0])):
        against = {r.case.label: r.best.ratio[1] for r in held if r.best}
        ratio = geometric_mean(list(against.values()))
        least = min(against, key=lambda label: against[label], default="")
        outcomes = [r.outcome for r in held if r.outcome]
        turns = [o.held[0] for o in outcomes if o.share[1] == "bandwidth" and o.of_loop]
        worst = f"{against[least]:.3f} ({least})" if least else "–"
        cells = [
            name, str(len(held)), f"{ratio:.3f}" if ratio else "no peer", worst,
            _span(o.share[0] for o in outcomes), _span(turns),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def codes(data: dict[str, Any]) -> str:
    """How many rows were measured with which code."""
    found = Counter(row["code"] for row in data["rows"])
    said = "Rows by revision: " + ", ".join(f"{code} {count}" for code, count in found.most_common())
    other = Counter(row["rounds"] for row in data["rows"] if "rounds" in row)
    return said + "".join(f"; {count} of {n} rounds, not {data['rounds']}" for n, count in other.items())


def _span(shares: Iterable[float]) -> str:
    found = sorted(shares)
    return " to ".join(dict.fromkeys(f"{s:.0%}" for s in (*found[:1], *found[-1:]))) or "–"


def _place(series: str) -> tuple[int, str]:
    order = ("gemm", "skinny", "conv", "depthwise", "fused", "rows", "coverage")
    return order.index(series.split()[0]), series


def _less(value: Any, under: str = "") -> Any:
    """The value with rounded numbers and without what is left out."""
    match value:
        case float():
            return float(f"{value:.{DIGITS}g}")
        case dict():
            return {k: _less(v, k) for k, v in value.items() if k not in LEFT_OUT.get(under, ())}
        case list() | tuple():
            return [_less(v) for v in value]
    return value
