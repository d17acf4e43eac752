"""What is said of families of plans: of their times, and why one has no plan."""

from __future__ import annotations

from autosched.search.tuning.families import as_asked, can_be, over_best
from autosched.store.records import Measurement, Trial


def measured(time_s: float, **extra: float) -> Measurement:
    return Measurement("ok", time_s, extra=dict(extra))


def test_a_corrected_time_above_the_peak_does_not_count() -> None:
    """A time that was corrected for a machine that had changed was the best of all, 1.34 times the peak, and the
    families were compared with it."""
    work, peak = 1e9, 1e12
    assert not can_be(measured(0.75e-3, level=1.5), work, peak)
    assert can_be(measured(1.1e-3, level=1.5), work, peak)
    assert can_be(measured(0.75e-3), work, peak)  # rewrites save operations, or the peak is another's
    assert can_be(measured(0.75e-3, level=1.5), work, None)
    assert not can_be(Measurement("wrong"), work, peak)


def test_families_that_were_not_asked_for_have_one_reason() -> None:
    found = {"parts": "the pass has one tile", "tiles, kept": "stages hand on 2 KiB", "one pass": "no product"}
    assert as_asked(found, ()) == found
    other = "the request names other families"
    assert as_asked(found, ("one pass",)) == {"parts": other, "tiles, kept": other, "one pass": "no product"}


def test_the_final_round_says_which_family_is_the_best() -> None:
    """The line `plans` called the search's fastest family the best, and the answer above it came from another."""

    def trial(number: int, plan: str, time_s: float, which: str = "search") -> Trial:
        return Trial(number, plan, 0, {}, measured(time_s), round=which)

    searched = [trial(1, "tiles", 1.0), trial(2, "parts", 1.1), trial(3, "one pass", 2.2)]
    finals = [trial(4, "tiles", 1.5, "final"), trial(5, "parts", 1.2, "final")]
    assert over_best(searched, []) == {"tiles#0": 1.0, "parts#0": 1.1, "one pass#0": 2.2}
    assert over_best(searched, finals) == {"tiles#0": 1.25, "parts#0": 1.0, "one pass#0": 2.0}
    assert over_best([], []) == {}
