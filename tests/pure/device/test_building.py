"""Builds of a device that compiles ahead: used as they come, one by one after a mistake of ours, ended when let go."""

from time import monotonic

from autosched.device.protocol import Build, BuildsAhead
from autosched.search.stopwatch import Stopwatch
from autosched.search.tuning.building import Building


class Ahead:
    name = "ahead"

    def __init__(self, breaks_at=None):
        self.breaks_at, self.said, self.ended = breaks_at, [], False

    def build(self, candidate):
        return Build(candidate, payload=f"alone {candidate}")

    def measure(self, build, repeats="search"):
        raise NotImplementedError

    def describe(self):
        return {"name": self.name}

    def builds(self, candidates):
        try:
            for candidate in candidates:
                if candidate == self.breaks_at:
                    raise LookupError
                self.said.append(candidate)
                yield Build(candidate, payload=f"ahead {candidate}")
        finally:
            self.ended = True


def test_each_is_there_before_the_next_is_waited_for():
    device = Ahead()
    assert isinstance(device, BuildsAhead)
    found = Building(device, Stopwatch(monotonic)).all("abc", True)
    assert next(found).payload == "ahead a"
    assert device.said == ["a"]
    assert [b.payload for b in found] == ["ahead b", "ahead c"]
    assert device.ended


def test_after_a_mistake_the_others_are_built_one_by_one():
    found = Building(Ahead("b"), Stopwatch(monotonic)).all("abc", True)
    assert [b.payload for b in found] == ["ahead a", "alone b", "alone c"]


def test_what_nobody_waits_for_is_ended():
    device = Ahead()
    found = Building(device, Stopwatch(monotonic)).all("abc", True)
    next(found)
    found.close()
    assert device.ended
