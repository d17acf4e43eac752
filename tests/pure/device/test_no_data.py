"""Data that are subscripts and leave what they index end a run before its first trial, with what to assume."""

from __future__ import annotations

import pytest

from autosched.device.correctness.oracle import compute
from autosched.device.correctness.sampled import sampled
from autosched.errors import DataError
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import tune
from autosched.store.sqlite import SqliteStore

GATHER = """
def gather(I: s32[n], J: s32[n], T: f32[words], Y: f32[n], *, n=33, words=500):
    {assume}
    for i in range(n):
        Y[i] = T[{index}]
"""


@pytest.mark.parametrize(
    ("stated", "index", "said"),
    [
        ("assume(100 <= I <= 499)", "I[i] * I[i]", "needs assume(0 <= I <= 22), with which I[i] * I[i], the index of"),
        ("assume(0 <= J)", "I[i] ^ J[i]", "needs an assume about I and J that keeps I[i] ^ J[i], the index of"),
    ],
)
@pytest.mark.parametrize("data", [compute, sampled])
def test_the_error_says_what_to_assume(data, stated: str, index: str, said: str) -> None:
    program = parse(GATHER.format(assume=stated, index=index))
    with pytest.raises(DataError) as refused:
        data(program, 0)
    assert said in refused.value.message
    assert "500" in refused.value.message


def test_no_trial_is_kept(tmp_path) -> None:
    program = parse(GATHER.format(assume="assume(0 <= J)", index="I[i] ^ J[i]"))
    with SqliteStore(tmp_path / "s.db") as store:
        with pytest.raises(DataError):
            tune(TuneRequest(program, load_target("x86-avx2"), device="simulator", trials=3, store=store))
        assert not [trial for study in store.studies() for trial in store.trials(study.name)]


def test_a_square_of_an_index_is_drawn_inside() -> None:
    program = parse(GATHER.format(assume="assume(0 <= I <= 499)", index="I[i] * I[i]"))
    assert compute(program, 0).inputs["I"].max() <= 22
