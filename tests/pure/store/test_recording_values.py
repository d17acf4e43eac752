"""Values of a recording's file that cannot be right: each is refused with the file, the place and what to do."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autosched.errors import StoreError
from autosched.store.exchanged import read_all
from autosched.store.placed_json import PlacedJson
from autosched.store.recorded_space import RecordedPlan, RecordedSpace
from autosched.store.replay_file import read_replay, write_replay
from autosched.tiling.step import Decision

Data = dict[str, Any]


def small(path: Path) -> Data:
    """Six rows of two decisions, as `write_replay` writes them."""
    tile, order = Decision("tile", (1, 4, 16)), Decision("order", (0, 1), ("rows", "columns"))
    places = np.array([[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]], np.int32)
    time_s, known = np.array([4e-3, 2e-3, 3e-3, 5e-3, np.nan, 1e-3]), np.full(6, 0.1)
    status = np.array([0, 0, 0, 0, 2, 0], np.uint8)
    clock, lines = {"total": np.full(6, 1e-3)}, {"lines": np.arange(6)}
    plan = RecordedPlan("p", (tile, order), places, status, time_s, known, known, clock, lines, messages={4: "SIGSEGV"})
    write_replay(path, RecordedSpace("mine", (plan,), legal=6))
    return json.loads(gzip.decompress(path.read_bytes()))


def plan(name: str, *place: int | str, to: Any) -> Callable[[Data], None]:
    """A change of a field of the first plan, or of what stands at a place in it."""

    def change(data: Data) -> None:
        at: Any = data["plans"][0]
        for key in (name, *place)[:-1]:
            at = at[key]
        at[(name, *place)[-1]] = to

    return change


def top(name: str, to: Any) -> Callable[[Data], None]:
    return lambda data: data.update({name: to})


CASES: dict[str, tuple[Callable[[Data], None], str]] = {
    "half an index": (plan("indices", 0, 2, to=0.5), "indices[0][2] is 0.5, and must be a whole number from 0 to 2"),
    "true is no index": (plan("indices", 1, 3, to=True), "plans[0].indices[1][3] is true"),
    "a negative index": (plan("indices", 1, 3, to=-1), "plans[0].indices[1][3] is -1"),
    "an index too large": (plan("indices", 1, 3, to=2**70), "plans[0].indices[1][3] is 1180591620717411303424"),
    "an index that is a text": (plan("indices", 1, 3, to="1"), 'plans[0].indices[1][3] is "1"'),
    "indices that are no columns": (plan("indices", to="01"), 'plans[0].indices is "01", and must be a list'),
    "a column less": (plan("indices", to=[[0] * 6]), "plans[0].indices has 1 values, and there are 2 decisions"),
    "a short column": (plan("time_s", to=[1e-3] * 5), "plans[0].time_s has 5 values, and there are 6 rows"),
    "a value that is a text": (plan("decisions", 0, "domain", 1, to="4"), 'plans[0].decisions[0].domain[1] is "4"'),
    "a value that is a float": (plan("decisions", 0, "domain", 1, to=4.0), "plans[0].decisions[0].domain[1] is 4.0"),
    "a value too large": (plan("decisions", 0, "domain", 1, to=2**64), "domain[1] is 18446744073709551616"),
    "a value twice": (plan("decisions", 0, "domain", 1, to=1), "must be a list of different values"),
    "no values": (plan("decisions", 0, "domain", to=[]), "must be a list of different values, one at least"),
    "labels of others": (plan("decisions", 1, "labels", to=["rows"]), "must be empty, or 2 different texts"),
    "a label that is a number": (plan("decisions", 1, "labels", 0, to=3), "plans[0].decisions[1].labels[0] is 3"),
    "decisions that are none": (plan("decisions", to={}), "plans[0].decisions is {}, and must be a list"),
    "a time that is a text": (plan("time_s", 0, to="0.004"), '[0] is "0.004", and must be a finite number or null'),
    "a time too large": (plan("time_s", 0, to=1e308), "row 0 of 'p' has a time_s of 1e+308 s"),
    "a time too small": (plan("time_s", 0, to=1e-320), "row 0 of 'p' has a time_s of"),
    "a time that no float reaches": (plan("time_s", 0, to=10**400), "plans[0].time_s[0] is 1000000000000000"),
    "a negative cost": (plan("cost_s", 1, to=-1e9), "row 1 of 'p' has a cost_s of -1e+09 s"),
    "a negative spread": (plan("spread", 2, to=-1), "row 2 of 'p' has a spread of -1"),
    "a spread without bounds": (plan("spread", 2, to=1e300), "row 2 of 'p' has a spread of 1e+300"),
    "an unknown status": (plan("status", 0, to="fine"), 'plans[0].status[0] is "fine", and must be a status'),
    "a status that is a list": (plan("status", 0, to=["ok"]), 'plans[0].status[0] is ["ok"]'),
    "half a repeat": (plan("repeats", to=[1.5] * 6), "plans[0].repeats[0] is 1.5"),
    "a repeat too large": (plan("repeats", to=[2**31] * 6), "plans[0].repeats[0] is 2147483648"),
    "a term that refers to nothing": (plan("terms", "total", "at", 0, to=7), "plans[0].terms.total.at[0] is 7"),
    "a term below zero": (plan("terms", "total", "values", 0, to=-1), "row 0 of 'p' has a term total of -1 s"),
    "a derived half": (plan("derived", "lines", "values", 0, to=0.5), "plans[0].derived.lines.values[0] is 0.5"),
    "terms that are a list": (plan("terms", to=[]), "plans[0].terms is [], and must be an object"),
    "a message of no row": (plan("messages", to={"9": "?"}), "plans[0].messages.9 names no row"),
    "a message of a word": (plan("messages", to={"four": "?"}), "plans[0].messages.four names no row"),
    "a message that is a number": (plan("messages", to={"4": 1}), "plans[0].messages.4 is 1, and must be a text"),
    "a plan's name of two lines": (plan("name", to="p\nq"), 'plans[0].name is "p\\nq", and must be'),
    "plans that are texts": (top("plans", ["p"]), 'plans[0] is "p", and must be an object'),
    "a name of two lines": (top("name", "mine\nbest"), 'name is "mine\\nbest", and must be a text of one line'),
    "a name of none": (top("name", ""), 'name is "", and must be a text of one line'),
    "half a pair": (top("name", "a\ud800"), 'name is "a\\ud800", and must be a text of whole characters'),
    "a program that is none": (top("program", None), "program is null, and must be a text"),
    "fewer legal rows than rows": (top("legal", 1), "has 6 rows, and legal says that there are 1"),
    "legal below zero": (top("legal", -5), "legal is -5, and must be a whole number from 0"),
    "legal without bounds": (top("legal", 10**400), "legal is 1000000000000000"),
    "legal that is a text": (top("legal", "6"), 'legal is "6"'),
    "settings that are a list": (top("settings", []), "settings is [], and must be an object"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_value_that_cannot_be_right(case: str, tmp_path: Path) -> None:
    change, said = CASES[case]
    data = small(tmp_path / "small.json.gz")
    change(data)
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(data))
    for read in (read_replay, read_all):
        with pytest.raises(StoreError) as error:
            read(file)
        assert said in error.value.message
        assert str(file) in error.value.message
        assert error.value.hint
        assert len(str(error.value)) < 500


TEXTS: dict[str, tuple[str, str, str]] = {
    "a key twice": ('"version":', '"version":"1","version":', "plans[0].version stands there twice"),
    "a key twice at the top": ('"legal":6', '"legal":7,"legal":6', "legal stands there twice"),
    "thousands of digits": ('"legal":6', f'"legal":{"6" * 5000}', "column "),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_that_python_would_take(case: str, tmp_path: Path) -> None:
    old, new, said = TEXTS[case]
    text = json.dumps(small(tmp_path / "small.json.gz"), separators=(",", ":"))
    assert old in text
    file = tmp_path / "bad.json"
    file.write_text(text.replace(old, new))
    for read in (read_replay, read_all):
        with pytest.raises(StoreError, match=re.escape(said)) as error:
            read(file)
        assert str(file) in error.value.message
        assert "set_int_max_str_digits" not in str(error.value)


def test_what_is_right_is_read(tmp_path: Path) -> None:
    file = tmp_path / "good.json.gz"
    small(file)
    assert len(read_replay(file)) == 6
    unknown = json.loads(json.dumps(small(file)))
    unknown["legal"] = 0
    (tmp_path / "unknown.json").write_text(json.dumps(unknown))
    assert read_replay(tmp_path / "unknown.json").legal == 0


def test_a_name_of_two_lines_is_refused_wherever_it_comes_from(tmp_path: Path) -> None:
    known = read_replay((small(tmp_path / "a.json.gz"), tmp_path / "a.json.gz")[1])
    with pytest.raises(StoreError, match="not one line"):
        RecordedSpace("a\nb", known.plans)


def test_a_long_value_is_cut() -> None:
    assert len(str(PlacedJson("x" * 9000, "name").wrong("short"))) < 100


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("time_s", [4e-3, 2e-3, 3e-3], "the column time_s of 'mine' is no numpy array of floats"),
        ("status", np.array(["ok"] * 3), "the column status of 'mine' is no numpy array of integers"),
        ("indices", np.array([[0], [3], [2]], np.int32), "row 1 of 'mine' has index 3 for tile, which has 3 values"),
        ("time_s", np.array([4e-3, 2e-3]), "the column time_s of 'mine' has 2 of 3 rows"),
        ("indices", np.zeros((3, 2), np.int32), "the indices of 'mine' are not 1 for each of 3 rows"),
    ],
)
def test_plans_that_are_made_in_python(column: str, value: object, said: str) -> None:
    given: dict[str, Any] = {
        "indices": np.array([[0], [1], [2]], np.int32),
        "status": np.zeros(3, np.uint8),
        "time_s": np.array([4e-3, 2e-3, 3e-3]),
        "spread": np.full(3, np.nan),
        "cost_s": np.full(3, np.nan),
    }
    assert len(RecordedPlan("mine", (Decision("tile", (1, 4, 16)),), **given)) == 3
    with pytest.raises(StoreError, match=re.escape(said)):
        RecordedPlan("mine", (Decision("tile", (1, 4, 16)),), **(given | {column: value}))
