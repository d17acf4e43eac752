"""The event engine: queues at servers, barriers, semaphores, and jumps over what repeats exactly."""

from __future__ import annotations

import itertools
import random

import pytest

from autosched.device.simulator.engine import (
    Code,
    Give,
    Meet,
    Repeat,
    ServiceSpan,
    Simulated,
    Take,
    TooManyEventsError,
    Use,
    simulate,
)


def test_requests_are_served_in_the_order_in_which_they_are_made() -> None:
    program: tuple[Code, ...] = (Use(((0, 10),), latency=5),)
    assert simulate([program] * 3, 1).ends == (15, 25, 35)


def test_servers_work_side_by_side_and_least_is_a_floor() -> None:
    assert simulate([(Use(((0, 10), (1, 30))),)], 2).end == 30
    assert simulate([(Use(((0, 10),), least=50),)], 1).end == 50


def test_who_does_not_wait_goes_on_and_the_server_still_finishes() -> None:
    found = simulate([(Use(((0, 100),), wait=False), Use(((1, 10),)))], 2)
    assert found.ends == (10,)
    assert found.end == 100


def test_a_barrier_holds_all_up_until_the_last() -> None:
    slow, fast = (Use(((0, 90),)), Meet(0, 2, 7)), (Use(((1, 5),)), Meet(0, 2, 7))
    assert simulate([slow, fast], 2).ends == (97, 97)


def test_two_slots_let_copies_run_ahead_of_use() -> None:
    def pipeline(slots: int) -> int:
        load = (Repeat(10, (Take(0), Use(((0, 30),)), Give(1))),)
        work = (Repeat(10, (Take(1), Use(((1, 40),)), Give(0))),)
        return simulate([load, work], 2, [slots, 0]).end

    assert pipeline(1) == 10 * 70
    assert pipeline(2) == 30 + 10 * 40


def test_a_semaphore_is_raised_when_a_copy_has_landed() -> None:
    copy = (Repeat(30, (Take(0), Use(((0, 10),), latency=25, wait=False, gives=(1,)))),)
    work = (Repeat(30, (Take(1), Use(((1, 12),)), Give(0))),)
    ends = [simulate([copy, work], 2, [slots, 0]).end for slots in (1, 2, 4)]
    assert ends == [30 * 47, 14 * 47 + 59, 35 + 30 * 12]
    quick, whole = simulate([copy, work], 2, [3, 0]), everything([copy, work], 2, (3, 0))
    assert (quick.end, quick.busy) == (whole.end, whole.busy)


def everything(programs: list[tuple[Code, ...]], servers: int, semaphores: tuple[int, ...] = ()) -> Simulated:
    """Without jumps: a recorder that always wants more."""
    return simulate(programs, servers, semaphores, lambda span: True)


def random_body(rng: random.Random, depth: int) -> tuple[Code, ...]:
    body: list[Code] = []
    for _ in range(rng.randint(1, 3)):
        if depth < 2 and rng.random() < 0.4:
            body.append(Repeat(rng.randint(1, 40), random_body(rng, depth + 1)))
        else:
            uses = tuple((s, rng.randint(0, 9)) for s in rng.sample(range(3), rng.randint(1, 2)))
            body.append(Use(uses, rng.randint(0, 20), rng.randint(0, 12), rng.random() < 0.8))
    return tuple(body)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(60))
def test_jumps_change_nothing(seed: int) -> None:
    rng = random.Random(seed)
    same = (Repeat(rng.randint(1, 60), random_body(rng, 0)),)
    programs: list[tuple[Code, ...]] = [same] * rng.randint(1, 4)
    if rng.random() < 0.5:
        programs.append((Repeat(rng.randint(1, 60), random_body(rng, 1)),))
    quick, whole = simulate(programs, 3), everything(programs, 3)
    assert (quick.end, quick.ends, quick.busy) == (whole.end, whole.ends, whole.busy)
    assert whole.skipped == 0


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_jumps_change_nothing_with_semaphores_and_barriers(slots: int) -> None:
    load = (Repeat(20, (Repeat(50, (Take(0), Use(((0, 31),), 3), Give(1))),)),)
    work = (Repeat(20, (Repeat(50, (Take(1), Use(((1, 17),)), Meet(0, 2, 2), Give(0))), Use(((0, 100),)))),)
    other = (Repeat(1000, (Use(((1, 5),)), Meet(0, 2, 2))),)
    quick, whole = (run([load, work, other], 2, (slots, 0)) for run in (simulate, everything))
    assert (quick.end, quick.ends, quick.busy) == (whole.end, whole.ends, whole.busy)
    assert quick.events < whole.events / 4


def test_a_million_trips_take_few_events() -> None:
    found = simulate([(Repeat(10**6, (Use(((0, 3),), 4), Use(((1, 2),)))),)], 2)
    assert found.end == 9 * 10**6
    assert found.busy == (3 * 10**6, 2 * 10**6)
    assert found.events < 100


def test_spans_of_a_server_do_not_overlap_and_a_recorder_may_have_enough() -> None:
    spans: list[ServiceSpan] = []

    def record(span: ServiceSpan) -> bool:
        spans.append(span)
        return len(spans) < 50

    program = (Repeat(1000, (Use(((0, 3), (1, 5)), name="step"),)),)
    found = simulate([program] * 2, 2, record=record)
    assert len(spans) == 50
    assert found.skipped > 0
    for server in (0, 1):
        own = sorted((s.start, s.end) for s in spans if s.server == server)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(own))


def test_what_never_repeats_is_given_up_on() -> None:
    body = tuple(Use(((0, k),)) for k in range(200))
    with pytest.raises(TooManyEventsError, match="more than 100 events"):
        simulate([body], 1, most=100)
    with pytest.raises(AssertionError, match="never comes"):
        simulate([(Take(0),)], 0, [0])
