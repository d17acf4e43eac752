"""Trials are told from the machine: what a stretch of slowness, or of speed, does to the times of a study."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosched.device.cpu.drift_correction import CLOSE, DriftCorrection
from autosched.device.cpu.timing import Sampler, sample
from autosched.device.job import Effort

EFFORT = Effort(most=15, budget_s=0.01, paced=True)


class Machine:
    """Kernels take their time, times the level; `calls` counts those of each."""

    def __init__(self) -> None:
        self.level = 1.0
        self.calls: dict[float, int] = {}

    def kernel(self, call_s: float) -> Sampler:
        def run(times: int) -> float:
            self.calls[call_s] = self.calls.get(call_s, 0) + times
            return times * call_s * self.level

        return run


def times(kernels: Sequence[float], level_at: Callable[[int], float]) -> tuple[list[float], list[float], Machine]:
    """What is kept of each trial, and the levels told."""
    machine, pace = Machine(), DriftCorrection()
    kept, levels = [], []
    for number, call_s in enumerate(kernels):
        machine.level = level_at(number)
        run = machine.kernel(call_s)
        samples, why, level = pace.paced(run, lambda run=run, s=call_s: sample(run, EFFORT, s), EFFORT)
        assert why == "stable"
        kept.append(samples[0])
        levels.append(level)
    return kept, levels, machine


@pytest.mark.parametrize("slow", [1.6, 2.0, 5.0])
def test_a_stretch_of_slowness_does_not_count(slow: float) -> None:
    kernels = [1e-3, 1.1e-3, 0.95e-3, 1.02e-3, 0.99e-3, 1.2e-3, 0.97e-3]
    kept, levels, _ = times(kernels, lambda n: slow if 2 <= n <= 4 else 1.0)
    assert kept == pytest.approx(kernels)
    assert levels == pytest.approx([1, 1, slow, slow, slow, 1, 1])


def test_a_study_that_begins_in_one_goes_on_in_its_units() -> None:
    kept, levels, _ = times([1e-3, 1.1e-3, 0.9e-3, 1.05e-3], lambda n: 2.0 if n < 2 else 1.0)
    assert kept == pytest.approx([2e-3, 2.2e-3, 1.8e-3, 2.1e-3])
    assert levels == pytest.approx([1, 1, 0.5, 0.5])


def test_a_slow_trial_on_a_quiet_machine_is_slow_and_a_fast_one_fast() -> None:
    kernels = [1e-3, 4e-3, 0.5e-3, 2e-3, 0.52e-3]
    kept, levels, machine = times(kernels, lambda n: 1.0)
    assert kept == pytest.approx(kernels)
    assert levels == [1.0] * 5
    assert machine.calls[1e-3] > machine.calls[0.5e-3]  # the first was looked at beside 4 ms and 0.5 ms, this beside 2


def test_a_fast_trial_in_a_slow_stretch_is_fast() -> None:
    """It takes just then what the known kernel takes otherwise."""
    kernels = [1e-3, 1.1e-3, 0.5e-3, 1e-3]
    kept, levels, _ = times(kernels, lambda n: 2.0 if n in (1, 2) else 1.0)
    assert kept == pytest.approx(kernels)
    assert levels == pytest.approx([1, 2, 2, 1])


@pytest.mark.parametrize("call_s", [1.3e-3, 1.6e-3, 1.7e-3])
def test_the_first_trial_of_a_fast_stretch_is_not_taken_for_a_fast_one(call_s: float) -> None:
    """It takes a little less than the known kernel did, and would be what all trials are held against."""
    kernels = [1e-3, call_s, 0.95e-3, 1.1e-3, 1.2e-3]
    kept, levels, _ = times(kernels, lambda n: 0.5 if 1 <= n <= 3 else 1.0)
    assert kept == pytest.approx(kernels)
    assert levels == pytest.approx([1, 0.5, 0.5, 0.5, 1])


def test_a_machine_that_gets_faster_bit_by_bit_is_noticed() -> None:
    kept, levels, _ = times([1e-3] * 4, lambda n: 0.8**n)
    assert kept == pytest.approx([1e-3, 0.8e-3, 1e-3, 1e-3])
    assert levels == pytest.approx([1, 1, 0.64, 0.512])


def test_trials_like_the_known_kernel_cost_nothing_more() -> None:
    *_, machine = times([1e-3, 1.1e-3, 1.2e-3, 0.95e-3], lambda n: 1.0)
    assert machine.calls[1e-3] == EFFORT.fewest


@given(st.lists(st.tuples(st.floats(0.5, 3.0), st.sampled_from([1.0, 1.0, 1.5, 3.0])), min_size=2, max_size=20))
def test_kept_times_rank_as_the_kernels_do(trials: list[tuple[float, float]]) -> None:
    kernels = [1e-3, *(k * 1e-3 for k, _ in trials)]
    kept, _, _ = times(kernels, lambda n: 1.0 if n == 0 else trials[n - 1][1])
    for k, t in zip(kernels, kept, strict=True):
        assert k / (1 + CLOSE) ** 2 <= t <= k * (1 + CLOSE) ** 2


def test_samples_that_a_change_divides_are_taken_again() -> None:
    machine, pace = Machine(), DriftCorrection()
    known, trial = machine.kernel(1e-3), machine.kernel(1.01e-3)
    pace.paced(known, lambda: sample(known, EFFORT, 1e-3), EFFORT)
    taken: list[list[float]] = []

    def take() -> tuple[list[float], str]:
        machine.level = 3.0 if not taken else 1.0
        taken.append(sample(trial, EFFORT, 1e-3)[0])
        return taken[-1], "stable"

    samples, _, level = pace.paced(trial, take, EFFORT)
    assert (len(taken), level) == (2, 1.0)
    assert samples == taken[1]


def test_slices_of_time_that_others_have_are_no_level_of_the_machine() -> None:
    """A process on the same core takes every other 4 ms of it. Where a look at the known kernel met one of these, the
    trial counted as many times too fast, became the known kernel, and made every later look longer and wronger."""
    slice_s = 4e-3
    own_s = 0.0

    def kernel(call_s: float) -> Sampler:
        def run(times: int) -> float:
            nonlocal own_s
            before = own_s // slice_s
            own_s += times * call_s
            return times * call_s + (own_s // slice_s - before) * slice_s

        return run

    pace = DriftCorrection()
    for number in range(200):
        call_s = (1.2 + 0.1 * (number * 7 % 10)) * 1e-3
        run = kernel(call_s)
        began_s = own_s
        samples, _, level = pace.paced(run, lambda run=run, s=call_s: sample(run, EFFORT, s), EFFORT)
        assert level == 1.0
        assert min(samples) == pytest.approx(call_s)
        assert own_s - began_s < 0.1
