"""What any device must do. A device's test file subclasses `DeviceConformance` and says what to measure with.

```python
class TestMine(DeviceConformance):
    deterministic = True

    @pytest.fixture
    def device(self): ...

    @pytest.fixture
    def candidates(self): ...      # a few that build and run right, as many as there are: at least two
```
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Sequence

import pytest

from autosched.device.protocol import Build, Device
from autosched.store.records import STATUSES, Measurement
from autosched.tiling.candidate import Candidate


class DeviceConformance:
    """The contract of `Device`: describe, build, measure, close."""

    deterministic = False
    """Whether measuring again gives the same time (a simulator)."""

    @pytest.fixture
    def device(self) -> Device:
        raise NotImplementedError

    @pytest.fixture
    def candidates(self) -> Sequence[Candidate]:
        raise NotImplementedError

    def measured(self, device: Device, candidate: Candidate, repeats: str = "search") -> Measurement:
        build = device.build(candidate)
        assert build.error is None, build.error
        return device.measure(build, repeats)

    def test_describe_is_plain_stable_and_named(self, device: Device) -> None:
        said = device.describe()
        assert said == device.describe()
        assert json.loads(json.dumps(said)) == said
        assert isinstance(said["name"], str)
        assert said["name"]

    def test_a_good_candidate_has_a_time(self, device: Device, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            measurement = self.measured(device, candidate)
            assert measurement.status == "ok", measurement.message
            assert measurement.time_s is not None
            assert 0 < measurement.time_s < math.inf
            assert all(s > 0 for s in measurement.samples_s)
            if measurement.samples_s:
                assert min(measurement.samples_s) <= measurement.time_s <= max(measurement.samples_s)
            if measurement.max_abs_error is not None and measurement.tolerance is not None:
                assert measurement.max_abs_error <= measurement.tolerance
            assert measurement.spread is None or measurement.spread >= 0
            assert all(seconds >= 0 for seconds in measurement.costs_s.values())

    def test_builds_keep_their_candidate(self, device: Device, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            build = device.build(candidate)
            assert build.candidate is candidate
            assert (build.payload is None) == (build.error is not None)
            assert build.seconds >= 0

    def test_equal_candidates_build_equal_kernels(self, device: Device, candidates: Sequence[Candidate]) -> None:
        first, again = device.build(candidates[0]), device.build(candidates[0])
        assert first.kernel_sha == again.kernel_sha

    def test_final_measures_too(self, device: Device, candidates: Sequence[Candidate]) -> None:
        assert self.measured(device, candidates[0], "final").ok

    def test_a_failed_build_is_measured_as_such(self, device: Device, candidates: Sequence[Candidate]) -> None:
        measurement = device.measure(Build(candidates[0], error="it would not"))
        assert measurement.status == "build"
        assert "it would not" in measurement.message
        assert measurement.time_s is None

    def test_order_does_not_matter(self, device: Device, candidates: Sequence[Candidate]) -> None:
        builds = [device.build(c) for c in candidates]
        forward = [device.measure(b) for b in builds]
        backward = [device.measure(b) for b in reversed(builds)][::-1]
        assert [m.status for m in forward] == [m.status for m in backward]
        if self.deterministic:
            assert [m.time_s for m in forward] == [m.time_s for m in backward]

    def test_measurements_can_be_kept(self, device: Device, candidates: Sequence[Candidate]) -> None:
        measurement = self.measured(device, candidates[0])
        assert measurement.status in STATUSES
        assert pickle.loads(pickle.dumps(measurement)) == measurement
        json.dumps([measurement.extra, measurement.costs_s, measurement.samples_s])

    def test_closing_twice_is_fine(self, device: Device) -> None:
        device.close()
        device.close()
