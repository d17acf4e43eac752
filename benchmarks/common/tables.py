"""Rows of results as tables, and what was asked of each series against what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from typing import Any

from benchmarks.common import contest, tuning
from benchmarks.common.contest import Against, Outcome
from benchmarks.common.suite import ASKED, Asked, Case
from benchmarks.common.tuning import Tuned


def row_key(case: Case, threads: int, packed: bool) -> str:
    return f"{case.name} threads={threads} {'packed' if packed else 'plain'}"


@dataclass(frozen=True)
class Row:
    """One case on so many threads. `error` says why there is no outcome."""

    case: Case
    threads: int
    packed: bool
    tuned: Tuned
    outcome: Outcome | None
    error: str = ""

    @property
    def key(self) -> str:
        return row_key(self.case, self.threads, self.packed)

    @property
    def onednn(self) -> Against | None:
        """oneDNN's fastest call that counts."""
        return self._fastest("oneDNN")

    @property
    def best(self) -> Against | None:
        """The fastest peer that counts."""
        return self._fastest(None)

    def _fastest(self, family: str | None) -> Against | None:
        against = self.outcome.against if self.outcome else []
        fair = [a for a in against if not a.why_not and family in (None, a.family)]
        return min(fair, key=lambda a: a.ratio[1], default=None)

    def cells(self) -> list[str]:
        """case · threads · speed [quartiles] · share of the limit · against the best · against others · search"""
        search = f"{self.tuned.trials} in {self.tuned.wall_s:.1f} s" if self.tuned.trials else "none"
        if self.tuned.failed:
            search += ", failed " + " ".join(f"{k} {n}" for k, n in self.tuned.failed.items())
        how = ", ".join(n.split("/")[-1] for n in self.tuned.intrinsics) or "scalar"
        if self.outcome is None:
            return [self.case.name, str(self.threads), f"**{self.error}**", "", "", "", search, how]
        o = self.outcome
        slow, middle, fast = (o.operations / s / 1e9 for s in reversed(o.seconds))
        others = sorted((a for a in o.against if a is not self.best), key=lambda a: a.ratio[1])
        notes = [f"{a.ratio[1]:.2f} {a.name}" + (f" ({a.why_not})" if a.why_not else "") for a in others]
        notes += [f"{name}: {differs}" for name, differs in o.wrong.items()]
        if o.within:
            wider = f"; wider data: {o.seconds[1] / o.outside_s[1]:.2f} of this speed" if o.outside_s else ""
            notes.append(f"data of all within {o.within}{wider}")
        notes += [f"**{self.error}**"] if self.error else []
        return [
            self.case.name, str(self.threads), f"{middle:.1f} [{slow:.1f}, {fast:.1f}]", _shares(o),
            _against(self.best), "<br>".join(notes), search, how,
        ]  # fmt: skip

    def line(self) -> str:
        name, threads, speed, share, best, _, search, how = self.cells()
        said = f"GOP/s, {share}; {best}" + (f"; {self.error}" if self.error else "") if self.outcome else ""
        return f"{name} ({threads} thread{'s' if threads != '1' else ''}): {speed} {said}; {search}; {how}"

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        return found | {"key": self.key, "share": self.outcome.share if self.outcome else None}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Row:
        outcome = contest.from_json(data["outcome"]) if data["outcome"] else None
        tuned = tuning.from_json(data["tuned"])
        return Row(Case(**data["case"]), data["threads"], data["packed"], tuned, outcome, data["error"])


def _shares(found: Outcome) -> str:
    """Of the nearer limit; where that is bandwidth, of the plain loop's best pass, and in turn with that loop."""
    share, limit = found.share
    if limit != "bandwidth" or found.of_loop is None:
        return f"{share:.0%} {limit}"
    low, middle, high = found.of_loop
    return f"{share:.0%} {limit}, {middle:.0%} [{low:.0%}, {high:.0%}] in turn"


def _against(peer: Against | None) -> str:
    return f"**{peer.ratio[1]:.3f}** [{peer.ratio[0]:.2f}, {peer.ratio[2]:.2f}] {peer.name}" if peer else "no peer"


HEAD = ["case", "threads", "GOP/s", "share of the limit", "against the best peer", "others", "trials", "instruction"]


def table(rows: Sequence[Row]) -> str:
    """Markdown. Ratios are peer / ours in time: above 1 ours is faster."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    return "\n".join(lines + ["| " + " | ".join(row.cells()) + " |" for row in rows])


def geometric_mean(values: Sequence[float]) -> float | None:
    return exp(sum(map(log, values)) / len(values)) if values else None


@dataclass(frozen=True)
class Summary:
    """A series on so many threads: geometric means and the least, of how many shapes, and what was asked and missed."""

    series: str
    threads: int
    packed: bool
    shapes: int
    missing: int
    of_onednn: float | None
    of_best: float | None
    least: float | None
    least_share: float | None
    missed: list[str]
    verdict: str

    def line(self) -> str:
        parts = {"oneDNN": self.of_onednn, "the best peer": self.of_best, "the least": self.least}
        said = [f"{v:.3f} of {k}" if k != "the least" else f"least {v:.3f}" for k, v in parts.items() if v is not None]
        if self.least_share is not None:
            said.append(f"share of the limit from {self.least_share:.0%}")
        verdict = "missed: " + "; ".join(self.missed) if self.missed else self.verdict
        count = f"{self.shapes} shapes" + (f", {self.missing} without a result" if self.missing else "")
        kind = "packed" if self.packed else "nothing packed"
        return f"{self.series}, {self.threads} thread(s), {kind}: {', '.join(said) or 'no ratio'} ({count}): {verdict}"


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """One a series, in the rows' order. What is asked holds where constants are packed; the plain table informs."""
    series: dict[tuple[str, str, int, bool], list[Row]] = {}
    for row in rows:
        series.setdefault((row.case.group, row.case.series, row.threads, row.packed), []).append(row)
    return [
        _summary(f"{group}/{name}", threads, packed, found, ASKED[group] if packed else Asked())
        for (group, name, threads, packed), found in series.items()
    ]


def _summary(name: str, threads: int, packed: bool, rows: list[Row], asked: Asked) -> Summary:
    onednn = geometric_mean([r.onednn.ratio[1] for r in rows if r.onednn])
    ratios = [r.best.ratio[1] for r in rows if r.best]
    best, least = geometric_mean(ratios), min(ratios, default=None)
    shares = [r.outcome.share[0] for r in rows if r.outcome]
    missing = sum(r.outcome is None for r in rows)
    missed = [
        f"{what} {got:.3f}, asked {wanted:.2f}"
        for what, got, wanted in (
            ("of oneDNN", onednn, asked.of_onednn), ("of the best", best, asked.of_best), ("least", least, asked.least),
        )
        if got is not None and wanted is not None and got < wanted
    ]  # fmt: skip
    for row in rows:
        wanted = row.case.share or asked.share
        if packed and wanted and row.outcome and row.outcome.held[0] < wanted:
            share, limit = row.outcome.held
            missed.append(f"{row.case.label} at {share:.0%} of {limit}, asked {wanted:.0%}")
    if missing:
        missed.append(f"{missing} without a result")
    least_share = min(shares, default=None)
    verdict = "missed" if missed else "nothing asked" if asked == Asked() else "as asked"
    return Summary(name, threads, packed, len(rows), missing, onednn, best, least, least_share, missed, verdict)
