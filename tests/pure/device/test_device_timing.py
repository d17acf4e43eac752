"""Sampling and comparing, without a clock and without a kernel."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autosched.device.correctness.compare import compare
from autosched.device.cpu.timing import FEW, batch, half_width, sample, spread
from autosched.device.job import Effort


class Machine:
    """A kernel of `call_s`, with noise; counts calls."""

    def __init__(self, call_s, noise=0.0, seed=0):
        self.call_s, self.noise, self.calls, self.clock_s = call_s, noise, 0, 0.0
        self.rng = np.random.default_rng(seed)

    def __call__(self, times):
        self.calls += times
        took = times * self.call_s * (1 + self.noise * self.rng.exponential())
        self.clock_s += took
        return took


@given(st.floats(1e-9, 10.0), st.floats(0, 0.5), st.integers(0, 99))
def test_sampling_ends_and_the_median_is_of_one_call(call_s, noise, seed):
    machine = Machine(call_s, noise, seed)
    effort = Effort()
    samples, why = sample(machine, effort, machine(1))
    assert why in ("stable", "budget", "most")
    assert 3 <= len(samples) <= effort.most
    assert call_s <= np.median(samples) * (1 + 1e-9)
    slack = 8 * max(call_s, effort.sample_s) * (1 + 12 * noise)
    assert machine.clock_s <= 4 * effort.budget_s + slack + effort.budget_s


def test_a_steady_kernel_stops_at_the_fewest():
    samples, why = sample(Machine(1e-4), Effort(fewest=5), 1e-4)
    assert (len(samples), why) == (5, "stable")


def test_noise_buys_samples():
    steady, _ = sample(Machine(1e-4, 0.001), Effort(), 1e-4)
    noisy, _ = sample(Machine(1e-4, 0.3), Effort(), 1e-4)
    assert len(noisy) > len(steady)


def test_batches_last_as_long_as_asked():
    assert batch(2**-20, Effort(sample_s=2**-10)) == 1024
    assert batch(1.0, Effort(sample_s=1e-3)) == 1


def test_a_slow_kernel_costs_one_more_call():
    machine = Machine(1.0)
    samples, why = sample(machine, Effort(slower_than_s=0.3), 1.0)
    assert (samples, why, machine.calls) == ([1.0], "slow", 1)


@pytest.mark.parametrize("disturbed", [[8.0], [8.0, 5.0], [9.0, 6.0]])
def test_a_batch_that_met_other_work_does_not_make_a_kernel_slow(disturbed):
    """The first call waited for its data (4 ms), and what came next had the core for a part of the time."""
    times = iter([*(1e-3 * t for t in disturbed), *[1e-3] * 100])
    samples, why = sample(lambda calls: next(times) * calls, Effort(slower_than_s=2.9e-3), 4e-3)
    assert why == "stable"
    assert np.median(samples) == pytest.approx(1e-3)


def test_a_slow_kernel_whose_calls_differ_is_given_up_after_a_few():
    times = iter([8.0, 5.0, 7.0])
    assert sample(lambda calls: next(times) * calls, Effort(slower_than_s=0.3), 4.0) == ([4.0], "slow")
    assert next(times, None) is None


def test_a_batch_that_met_other_work_does_not_shorten_the_others():
    asked = []

    def machine(calls):
        asked.append(calls)
        return calls * 1e-6 + (0.02 if len(asked) == 1 else 0.0)

    sample(machine, Effort(sample_s=1e-3), 1.1e-6)
    assert set(asked[1:]) == {asked[0]}


def test_a_slow_first_call_alone_is_forgiven():
    samples, why = sample(Machine(1e-3), Effort(slower_than_s=0.3), 5.0)
    assert why == "stable"
    assert np.median(samples) == pytest.approx(1e-3)


def test_a_kernel_that_waits_for_its_data_is_not_given_up():
    """50 us were recorded as 275 us, with 40 us the best so far, from calls soon after the check."""
    times = iter([300e-6, 250e-6, 275e-6, *[50e-6] * 100])
    effort = Effort(slower_than_s=120e-6, rough_above_s=60e-6)
    samples, why = sample(lambda calls: next(times) * calls, effort, 600e-6)
    assert why == "stable"
    assert np.median(samples) == pytest.approx(50e-6)
    slow = Machine(200e-6)
    assert sample(slow, effort, 200e-6)[1] == "slow"
    assert slow.calls * 200e-6 == pytest.approx(2e-3, rel=0.3)


def test_half_width_shrinks_with_samples():
    rng = np.random.default_rng(0)
    few, many = rng.normal(1, 0.01, 10).tolist(), rng.normal(1, 0.01, 1000).tolist()
    assert half_width(many) < half_width(few) < math.inf
    assert half_width([1.0]) == math.inf
    assert spread([1.0]) is None
    assert spread([1.0, 1.0, 1.0]) == 0.0


floats = hnp.arrays(np.float64, st.shared(st.integers(1, 20), key="n"), elements=st.floats(-1e6, 1e6))


@given(floats, floats, st.floats(0, 10))
def test_float_comparison_is_elementwise(got, want, tolerance):
    tolerances = np.full(want.shape, tolerance)
    found = compare(got, want, tolerances)
    errors = np.abs(got - want)
    assert found.ok == bool((errors <= tolerance).all())
    assert found.wrong == int((errors > tolerance).sum())
    assert found.error == errors[found.index]
    if not found.ok:
        assert found.error - tolerance == (errors - tolerance).max()


@pytest.mark.parametrize(
    ("got", "want", "ok"),
    [
        (np.nan, np.nan, True),
        (np.nan, 1.0, False),
        (1.0, np.nan, False),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (1.0, np.inf, False),
        (np.inf, 1e30, False),
        (0.0, -0.0, True),
    ],
)
def test_special_values(got, want, ok):
    for tolerance in (0.0, 1.0, np.inf):
        found = compare(np.array([got]), np.array([want]), np.array([tolerance]))
        of_one_kind = (np.isfinite(got) and np.isfinite(want)) or (np.isinf(got) and np.isinf(want))
        assert found.ok is ok or (tolerance == np.inf and of_one_kind)


@given(hnp.arrays(np.uint64, 5), hnp.arrays(np.uint64, 5))
def test_integers_are_exact(got, want):
    found = compare(got, want, None)
    assert found.ok == bool((got == want).all())
    if not found.ok:
        assert int(got[found.index]) != int(want[found.index])
        assert found.error > 0


def test_nothing_to_compare():
    assert compare(np.zeros(0), np.zeros(0), np.zeros(0)).ok


def test_a_kernel_that_cannot_win_gets_a_few_samples():
    samples, why = sample(Machine(1e-3, 0.3), Effort(rough_above_s=8e-4), 1e-3)
    assert (len(samples), why) == (FEW, "rough")
    samples, why = sample(Machine(1e-4), Effort(rough_above_s=2e-4), 1e-4)
    assert why == "stable"
