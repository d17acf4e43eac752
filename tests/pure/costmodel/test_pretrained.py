"""What earlier studies teach a model before the first trial, and which features a model relies on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conformance.synthetic import clock, hidden_s, make_plan
from support.paths import TESTS

from autosched.costmodel.accuracy.importance import importance
from autosched.costmodel.features import FeatureMismatchError, Features, FeatureSchema
from autosched.costmodel.learned.learned import AnalyticModel, ResidualModel
from autosched.costmodel.learned.pretrained import Earlier, Pretrained
from autosched.costmodel.protocol import Samples
from autosched.errors import StoreError, UsageError
from autosched.search import SearchSpace
from autosched.search.tuning.warm import earlier_recording, earlier_study
from autosched.store.records import Measurement, StudyRecord, Trial
from autosched.store.replay_file import read_replay

FILE = TESTS / "data" / "replay_depthwise.json.gz"


def samples(speed: float, rows: int, seed: int = 0) -> Samples:
    """Rows of a program `speed` times as long: the clock knows its length, and not what hides in it."""
    space = SearchSpace([make_plan("a", speed, tiles=4)], clock)
    drawn = space.locate(np.random.default_rng(seed).integers(0, space.rows, rows))
    features, seconds = space.described(drawn)
    plan = space.plans[0].plan
    return Samples(features, seconds, hidden_s(plan, plan.space.values(drawn.ids)), ("ok",) * rows)


def error(model: Pretrained | AnalyticModel, of: Samples) -> float:
    said = np.asarray(model.predict(of.features, of.analytic_s).log_s, np.float64)
    return float(np.sqrt(np.mean((said - np.log(of.time_s)) ** 2)))


def test_another_shape_is_predicted_better_than_by_the_clock() -> None:
    model = Pretrained(AnalyticModel(), Earlier(("long",), samples(8.0, 200)))
    asked = samples(1.0, 200, seed=1)
    # 0.63: a correction that rows left out confirm in part is believed in part.
    assert error(model, asked) < 0.65 * error(AnalyticModel(), asked)


def test_the_study_s_own_rows_count_as_well() -> None:
    other = samples(8.0, 64)
    model = Pretrained(ResidualModel(), Earlier(("slower",), replace(other, time_s=other.time_s * 3)))
    asked = samples(1.0, 200, seed=1)
    before = error(model, asked)
    own = samples(1.0, 32, seed=2)
    model.fit(own)
    assert error(model, asked) < 0.7 * before
    alone = ResidualModel()
    alone.fit(own)
    assert error(model, asked) < 0.9 * error(alone, asked), "what was known before helps on"
    assert model.version.endswith("pretrained")


def test_columns_that_are_not_known_are_left_out() -> None:
    schema = FeatureSchema(("plan.a", "x", "plan.b", "y"), ("",) * 4)
    given = Features(("y", "z", "plan.a"), ("",) * 3, schema.version, np.array([[1, 2, 1]], np.float32))
    np.testing.assert_array_equal(schema.adopt(given).matrix, [[1, np.nan, 0, 1]])


def test_features_of_another_version_are_refused() -> None:
    old = samples(1.0, 16)
    old = replace(old, features=replace(old.features, version="0"))
    with pytest.raises(FeatureMismatchError, match="features of version 0"):
        Pretrained(AnalyticModel(), Earlier(("old",), old))
    with pytest.raises(FeatureMismatchError, match="different versions"):
        Earlier.join([Earlier(("old",), old), Earlier(("new",), samples(1.0, 16))])


def test_a_recording_is_an_earlier_study() -> None:
    recording = read_replay(str(FILE))
    found = earlier_recording(recording)
    assert found.studies == (recording.name,)
    assert len(found.samples) == len(recording)
    assert np.nanmin(found.samples.time_s) == 1.0
    fine = found.samples.ok
    ratio = found.samples.time_s[fine] / found.samples.analytic_s[fine]
    recorded = [p.time_s[p.ok] / p.terms["total"][p.ok] for p in recording.plans if len(p)]
    np.testing.assert_allclose(ratio, np.concatenate(recorded), rtol=1e-5)
    bare = replace(recording, plans=tuple(replace(p, terms={}) for p in recording.plans))
    with pytest.raises(StoreError, match="without a clock") as caught:
        earlier_recording(bare)
    assert "recordings that autosched made" in (caught.value.hint or "")


def test_studies_that_cannot_be_learnt_from_are_refused() -> None:
    trial = Trial(1, "p", 0, {}, Measurement("ok", time_s=1.0))
    record = StudyRecord("old", {"clock": "1"}, "", "", "t", "cpu", 0, {"features": "0"})
    with pytest.raises(FeatureMismatchError, match=r"old was made with another version of features \(0; this is"):
        earlier_study(record, [trial], None)  # type: ignore[arg-type]  # refused before it is looked at
    record = replace(record, settings={"objective": "energy"})
    with pytest.raises(StoreError, match="minimised energy"):
        earlier_study(record, [trial], None)  # type: ignore[arg-type]


def test_what_decides_is_important() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.random((200, 4)).astype(np.float32)
    matrix[:, 3] = 1.0
    features = Features(("little", "much", "nothing", "constant"), ("1",) * 4, samples(1, 1).features.version, matrix)
    times = np.exp(0.2 * matrix[:, 0] + 1.5 * matrix[:, 1])
    given = Samples(features, np.ones(200, np.float32), times, ("ok",) * 200)
    found = importance(ResidualModel(), given)
    assert [i.feature for i in found.features[:2]] == ["much", "little"]
    rises = {i.feature: i.rise for i in found.features}
    assert rises["much"] > 5 * rises["little"] > 0
    assert abs(rises["nothing"]) < 0.5 * rises["little"]
    assert rises["constant"] == 0.0
    assert found.rows == 100
    with pytest.raises(UsageError, match="10 rows have a time"):
        importance(ResidualModel(), Samples(features.take(range(10)), times[:10], times[:10], ("ok",) * 10))
