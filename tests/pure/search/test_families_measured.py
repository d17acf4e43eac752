"""What is said of families of plans: of their times, and why one has no plan."""

from __future__ import annotations

from autosched.search.tuning.families import as_asked, can_be
from autosched.store.records import Measurement


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
