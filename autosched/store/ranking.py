"""Which trial of a study is its best: one rule, for every command and for the Python interface."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.store.records import Trial


def finals(trials: Sequence[Trial]) -> list[Trial]:
    """The trials of the final round that ended the study; empty where trials of the search followed it."""
    count = 0
    while count < len(trials) and trials[-1 - count].round != "search":
        count += 1
    return list(trials[len(trials) - count :])


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Of all trials of a study, in the order they were made: one a candidate that always came out right, best first.

    Of one candidate's trials the latest counts: where it was in a final round that is the one with most samples. Those
    of the final round that ended the study come first; the rest follows by what the study minimises.
    """
    bad = {trial.key for trial in trials if not trial.measurement.ok}
    latest = {t.key: t for t in trials if t.key not in bad and t.measurement.time_s is not None}
    final = {trial.key for trial in finals(trials)}
    return sorted(latest.values(), key=lambda t: (t.key not in final, t.measurement.cost or 0.0, t.number))
