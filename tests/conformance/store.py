"""What every store must do; subclass and provide `make`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autosched.errors import StoreError
from autosched.store import Measurement, Store, StudyRecord, Trial

KEY = {"program": "p", "target": "zen4"}
RECORD = StudyRecord("gemm", KEY, "def gemm…", "gemm", "zen4", "cpu", 7, {"n": [1, 2]}, "now")
OK = Trial(1, "vnni", 2**40, {"tile": 4, "pack": "yes"}, Measurement("ok", 1.5e-3, (1e-3, 2e-3), 0.1, 0.0, 0.0), 1e-3)
FAILED = Trial(2, "vnni", 3, {"tile": 8, "pack": "no"}, Measurement("crash", message="signal 11\nin the kernel"))
AGAIN = Measurement("ok", 1.25e-3, extra={"rounds_s": [1.0]})
FINAL = replace(OK, round="final", predicted_s=1.25e-3, measurement=AGAIN)


class StoreConformance:
    def make(self) -> Store:
        raise NotImplementedError

    def test_gives_back_what_it_was_given(self) -> None:
        store = self.make()
        assert store.open(RECORD) == RECORD
        for trial in (OK, FAILED, FINAL):
            store.append("gemm", trial)
        assert store.trials("gemm") == [OK, FAILED, FINAL]
        assert store.studies() == [RECORD]

    def test_a_study_keeps_its_first_seed(self) -> None:
        store = self.make()
        store.open(RECORD)
        store.append("gemm", OK)
        assert store.open(replace(RECORD, seed=8)).seed == 7
        assert store.trials("gemm") == [OK]

    def test_another_key_is_refused_and_the_fields_are_named(self) -> None:
        store = self.make()
        store.open(RECORD)
        with pytest.raises(StoreError, match="zen5") as error:
            store.open(replace(RECORD, key={**RECORD.key, "target": "zen5"}))
        assert "target" in error.value.message
        assert "program" not in error.value.message.split("results", 1)[1]

    def test_fresh_starts_over(self) -> None:
        store = self.make()
        store.open(RECORD)
        store.append("gemm", OK)
        other = replace(RECORD, key={"program": "p", "target": "zen5"}, seed=8)
        assert store.open(other, fresh=True) == other
        assert store.trials("gemm") == []

    def test_studies_do_not_mix(self) -> None:
        store = self.make()
        store.open(RECORD)
        store.open(replace(RECORD, name="other"))
        store.append("other", OK)
        assert store.trials("gemm") == []
        assert [r.name for r in store.studies()] == ["gemm", "other"]

    def test_an_unknown_study_is_an_error(self) -> None:
        store = self.make()
        with pytest.raises(StoreError):
            store.trials("gemm")
        with pytest.raises(StoreError):
            store.append("gemm", OK)

    def test_a_number_is_given_once(self) -> None:
        store = self.make()
        store.open(RECORD)
        store.append("gemm", OK)
        with pytest.raises(StoreError):
            store.append("gemm", replace(FAILED, number=1))
        assert store.trials("gemm") == [OK]
