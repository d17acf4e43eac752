"""Ctrl-C while a trial is being kept comes when it is kept."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.synthetic import SyntheticDevice, record
from support.studies import SPACE

from autosched.search import open_study
from autosched.search.defer_signals import defer_signals
from autosched.store import SqliteStore, Trial


class Interrupted(SqliteStore):
    """Ctrl-C comes while the second trial is written."""

    def append(self, study: str, trial: Trial) -> None:
        if trial.number == 2:
            os.kill(os.getpid(), signal.SIGINT)
        super().append(study, trial)


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """As in a terminal, wherever the tests run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_trial_that_was_being_kept_is_kept(tmp_path: Path) -> None:
    device = SyntheticDevice()
    with Interrupted(tmp_path / "studies.db") as store:
        study = open_study(record(), SPACE, store, strategy_name="random")
        one, two, three = study.ask(3)
        study.tell(one, device.measure(device.build(one)))
        with pytest.raises(KeyboardInterrupt):
            study.tell(two, device.measure(device.build(two)))
        study.tell(three, device.measure(device.build(three)))  # what was measured aside is kept then
        assert [t.number for t in store.trials(study.name)] == [1, 2, 3]
        assert [t.number for t in study.searched] == [1, 2, 3]


def test_it_is_answered_once_and_as_before() -> None:
    came = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    with defer_signals():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert came == []
    assert came == [signal.SIGINT]
    os.kill(os.getpid(), signal.SIGINT)
    assert len(came) == 2


def test_who_ignores_it_goes_on_doing_so_and_other_threads_have_no_part() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with defer_signals():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    failed = []

    def elsewhere() -> None:
        try:
            with defer_signals():
                pass
        except ValueError as error:  # what Python says of handlers set in another thread
            failed.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert not failed
