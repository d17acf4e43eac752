"""Rows of results, as tables and as JSON, and what was asked against what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.common import tuning
from benchmarks.common.tables import geometric_mean
from benchmarks.common.tuning import Tuned
from benchmarks.fused.cases import Case
from benchmarks.fused.contest import BOUND, OWN, PEER, Against, Outcome, case_from, outcome_from

OF_PYTORCH = {"attention": 1.25}
"""The least geometric mean against the fastest peer that is asked of a group, over all its series in f32."""
HEAD = [
    "case",
    "GFLOP/s",
    "of the peak",
    "against PyTorch",
    "against our own kernels",
    "of the roofline",
    "trials",
    "instruction",
]
LEFT_OUT = ("history", "events", "costs_s")


@dataclass(frozen=True)
class Row:
    """One case on so many threads, with the revision of the code (a + where it was changed) and how loaded the machine
    was before and after (processes that run, a minute's mean). `error` says why there is no outcome."""

    case: Case
    threads: int
    trials: int
    tuned: Tuned
    outcome: Outcome | None
    code: str = ""
    load: tuple[float, float] = (0.0, 0.0)
    error: str = ""

    @property
    def key(self) -> str:
        return f"{self.case.name} threads={self.threads}"

    def of(self, kind: str) -> list[Against]:
        """What the chain was timed against, of one kind; the best side comes first."""
        found = [a for a in self.outcome.against if a.kind == kind] if self.outcome else []
        return sorted(found, key=lambda a: a.ratio[1])

    @property
    def missed(self) -> list[str]:
        """What was asked of this case and did not come out."""
        against = self.outcome.against if self.outcome else []
        return [f"{a.name} {a.ratio[1]:.2f}, asked {a.asked:.2f}" for a in against if a.ratio[1] < a.asked]

    def cells(self) -> list[str]:
        how = ", ".join(dict.fromkeys(n.split("/")[-1] for n in self.tuned.intrinsics)) or "scalar"
        search = f"{self.tuned.trials} in {self.tuned.wall_s:.0f} s"
        search += "".join(f", {count} failed: {kind}" for kind, count in self.tuned.failed.items())
        if self.outcome is None:
            return [self.case.name, f"**{self.error}**", "", "", "", "", search, how]
        o = self.outcome
        slow, middle, fast = (o.operations / s / 1e9 for s in reversed(o.seconds))
        share = f"{middle * 1e9 / o.peak_ops:.0%}" if o.peak_ops else "–"
        peers = [_said(a, a is best) for a in self.of(PEER) for best in self.of(PEER)[:1]]
        reasons = o.notes | o.wrong
        peers += [
            f"{', '.join(n for n in reasons if reasons[n] == why)}: {why}" for why in dict.fromkeys(reasons.values())
        ]
        peers += [f"**{self.error}**"] if self.error else []
        own = [_said(a, a.asked > 0) for a in self.of(OWN)]
        bound = [_said(a, a.asked > 0) for a in self.of(BOUND)]
        return [self.case.name, f"{middle:.1f} [{slow:.1f}, {fast:.1f}]", share, "<br>".join(peers) or "–",
                "<br>".join(own) or "–", "<br>".join(bound) or "–", search, how]  # fmt: skip

    def line(self) -> str:
        cells = [cell.replace("<br>", "; ").replace("*", "") for cell in self.cells()]
        return f"{self.key}: " + " | ".join(cells[1:])

    def to_json(self) -> dict[str, Any]:
        found = asdict(self) | {"key": self.key}
        found["tuned"] = {k: v for k, v in found["tuned"].items() if k not in LEFT_OUT}
        return found

    @staticmethod
    def from_json(data: dict[str, Any]) -> Row:
        outcome = outcome_from(data["outcome"]) if data["outcome"] else None
        tuned = tuning.from_json(data["tuned"] | {"history": []})
        return Row(case_from(data["case"]), data["threads"], data["trials"], tuned, outcome, data["code"],
                   (data["load"][0], data["load"][1]), data["error"])  # fmt: skip


def _said(a: Against, bold: bool) -> str:
    low, middle, high = (f"{r:.2f}" for r in a.ratio)
    return f"{f'**{middle}**' if bold else middle} [{low}, {high}] {a.name}"


def table(rows: Sequence[Row]) -> str:
    """Markdown. Ratios are of speeds, chain to other: above 1 the chain is faster."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    return "\n".join(lines + ["| " + " | ".join(row.cells()) + " |" for row in rows])


def summaries(rows: Sequence[Row]) -> list[str]:
    """A line for each series on so many threads: geometric means and the least, by what it was timed against, and what
    was asked and missed."""
    series: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        series.setdefault((f"{row.case.group}/{row.case.series}", row.threads), []).append(row)
    lines = [_summary(f"{name}, {threads} thread(s)", held) for (name, threads), held in series.items()]
    for group, asked in OF_PYTORCH.items():
        for threads in dict.fromkeys(r.threads for r in rows):
            held = [r for r in rows if r.case.group == group and r.threads == threads and r.case.series.endswith("f32")]
            mean = geometric_mean([r.of(PEER)[0].ratio[1] for r in held if r.of(PEER)])
            if mean is not None:
                verdict = "as asked" if mean >= asked else "missed"
                lines.append(
                    f"{group} in f32, {threads} thread(s): {mean:.2f} of PyTorch, asked {asked:.2f}: {verdict}"
                )
    return lines


def _summary(name: str, rows: Sequence[Row]) -> str:
    ratios: dict[str, list[float]] = {}
    for row in rows:
        peers = row.of(PEER)
        if len(peers) > 1:
            ratios.setdefault("the fastest peer", []).append(peers[0].ratio[1])
        for against in (*peers, *row.of(OWN), *row.of(BOUND)):
            ratios.setdefault(against.name, []).append(against.ratio[1])
    said = [f"{geometric_mean(r):.2f} of {what} (least {min(r):.2f})" for what, r in ratios.items()]
    missed = [f"{row.case.label}: {', '.join(row.missed)}" for row in rows if row.missed]
    failed = [row.case.label for row in rows if row.outcome is None]
    said += [f"no result: {', '.join(failed)}"] if failed else []
    return f"{name}: {'; '.join(said)}" + (f". Missed: {'; '.join(missed)}" if missed else "")
