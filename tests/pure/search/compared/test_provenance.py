"""Results state the code that made them; words of it may change, the rest makes them stale."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from autosched.errors import StoreError
from autosched.store.replay_file import replays_of
from benchmarks.common import provenance
from benchmarks.common.budgets import budgets_markdown, families, leads
from benchmarks.common.search_table import Score, Space

CODE = '"""Says."""\n\n\ndef f(x):\n    """Also."""\n    return "# no comment", x  # one\n'


def test_words_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    before = provenance.digest(["a.py"], tmp_path)
    (tmp_path / "a.py").write_text(CODE.replace("Says", "Said").replace("# one", "").replace("\n\n\n", "\n"))
    assert provenance.digest(["a.py"], tmp_path) == before
    (tmp_path / "a.py").write_text(CODE.replace("# no comment", "# a comment"))
    assert provenance.digest(["a.py"], tmp_path) != before, "what is in a string is code"


def test_what_a_page_says_of_results(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text(CODE)
    made = provenance.made(["room"], tmp_path)
    assert "is the same today" in provenance.said({"made": made}, ["room"], tmp_path)
    (tmp_path / "room" / "b.py").write_text("x = 1\n")
    assert provenance.said({"made": made}, ["room"], tmp_path).startswith("*Stale: code that decides")
    again = provenance.replayed(made, ["room"], 44, root=tmp_path)
    assert "of 44 of these runs, drawn at random over all strategies, 44" in (
        said := provenance.said({"made": again}, ["room"], tmp_path)
    )
    assert said.startswith("*Made with")
    odd = provenance.replayed(made, ["room"], 44, ["ils on x, seed 3"], tmp_path)
    said = provenance.said({"made": odd}, ["room"], tmp_path)
    assert said.startswith("*Stale: made with")
    assert "43 came out the same" in said
    assert said.endswith("(not ils on x, seed 3).*")
    (tmp_path / "room" / "b.py").write_text("x = 2\n")
    assert provenance.said({"made": again}, ["room"], tmp_path).startswith("*Stale: code that decides")
    assert provenance.said({}, ["room"], tmp_path).startswith("*Stale: these figures were made before")
    assert "today's code may give others" in provenance.said({}, ["room"], tmp_path)


@pytest.mark.parametrize("rooms", [provenance.SEARCH, provenance.MODELS, provenance.INTERVALS])
def test_the_rooms_are_there(rooms: tuple[str, ...]) -> None:
    assert all((provenance.ROOT / room).exists() for room in rooms)


def test_leads_up_to_budgets() -> None:
    """`auto` less each of the others, over spaces; the sentence names those that it is not ahead of."""
    kept = {}
    for number in range(6):
        kept[f"{'gemm' if number < 2 else 'stencil'}_{number}"] = space = Space(100, False, 1.0, 150)
        for seed in range(2):
            of_others = (0.4 + 0.2 * (-1) ** number, 0.3 + 0.01 * number, 0.3 + 0.01 * number)
            of_ils = (0.1 + 0.01 * number, 0.2 + 0.01 * number, 0.3 + 0.01 * number)
            for name, until in (("auto", (0.5, 0.6, 0.7)), ("ils", of_ils), ("x", of_others)):
                space.add(name, seed, Score((0.0,) * 4, until[-1], (0.0, *until)))
    found = leads(kept, 64)
    assert found["ils"].difference.value == pytest.approx(0.6 - 0.225)
    assert found["ils"].difference.low > 0
    assert leads(kept, 32)["x"].difference.low < 0 < leads(kept, 32)["x"].difference.value
    assert {name: len(spaces) for name, spaces in families(kept).items()} == {"gemm": 2, "stencil": 4}
    text = budgets_markdown(kept)
    assert "up to 32 trials of 1 of 2 (not of `x`), up to 64 trials of 2 of 2, up to 150 trials of 2 of 2." in text
    assert "| gemm (2) | 0.500, 0.400 (`x`) |" in text
    assert not budgets_markdown({})


def test_a_status_that_is_none_is_named() -> None:
    path = provenance.ROOT / "benchmarks" / "recorded" / "complete" / "softmax.json.gz"
    data = json.loads(gzip.decompress(path.read_bytes()))
    data["plans"][0]["status"][3] = "compile"
    with pytest.raises(StoreError, match=r'status\[3\] is "compile", and must be a status: one of ok, build'):
        replays_of(data, "x.json")
