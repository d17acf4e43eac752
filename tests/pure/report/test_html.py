"""Reports: one file, well formed, nothing from elsewhere, and true to what they report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from support.hostile import DOCS
from support.paths import TESTS

import autosched
from autosched.errors import UsageError
from autosched.report.html import comparison_html, study_html
from autosched.report.svg import PlotAxis, Series, chart
from autosched.store.records import Measurement, StudyRecord, Trial
from autosched.text_file import write_text

CACHE = TESTS / "data" / "kernel_tuner" / "convolution_A4000_cut.json"
RECORD = StudyRecord("gemm<1>@native", {}, "def gemm(A: f32[m & 1]):", "gemm", "native", "cpu", 7)


def parsed(text: str) -> ElementTree.Element:
    """The page as a tree; HTML of ours is XML but for `<meta>`."""
    assert not re.search(r"https?:|src=|href=|@import|url\(|<script", text)
    return tree(text)


def tree(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>").replace('<meta charset="utf-8">', ""))


def trials() -> list[Trial]:
    done = [
        Trial(i, "p", i, {"tile": i}, Measurement("ok", 1e-3 / i, spread=0.01), 8e-4 / i, 9e-4 / i)
        for i in range(1, 9)
    ]
    failed = Trial(9, "p", 9, {"tile": 9}, Measurement("build", message="no <such> instruction"))
    final = Trial(8, "p", 8, {"tile": 8}, Measurement("ok", 1.3e-4, spread=0.02), round="final")
    return [*done, failed, final]


def words(page: ElementTree.Element) -> str:
    return " ".join("".join(page.itertext()).split())


def test_a_study() -> None:
    page = parsed(study_html(RECORD, trials(), {"Loop tree": "for i in 8: a < b"}))
    said = words(page)
    assert "gemm<1>@native" in said
    assert "trial 8: 130 µs, spread 2.0%" in said
    assert "no <such> instruction" in said
    assert "a < b" in said
    assert "m & 1" in said
    assert len(page.findall(".//svg")) == 2
    assert len(page.findall(".//circle")) == 8 + 2 * 8


@pytest.mark.parametrize("doc", DOCS.values(), ids=DOCS)
def test_texts_that_try_to_be_tags(doc: str) -> None:
    record = replace(RECORD, name=doc, program=f"def gemm():\n    {doc!r}", program_name=doc)
    text = study_html(record, [Trial(1, doc, 1, {doc: 1}, Measurement("crash", message=doc))], {doc: doc})
    text.encode()
    plain = study_html(RECORD, [Trial(1, "p", 1, {"tile": 1}, Measurement("crash"))], {"Loop tree": "for"})
    assert [e.tag for e in tree(text).iter()] == [e.tag for e in tree(plain).iter()]


@pytest.mark.parametrize("found", [[], [Trial(1, "p", 1, {}, Measurement("crash", message="it died"))]])
def test_a_study_that_found_nothing(found: list[Trial]) -> None:
    page = parsed(study_html(RECORD, found))
    assert len(page.findall(".//svg")) == 1
    assert ("it died" in words(page)) == bool(found)


def test_a_comparison() -> None:
    table = autosched.simulate(CACHE, ["random", "ils"], trials=12, repeats=3)
    page = parsed(comparison_html(table, "ils"))
    assert len(page.findall(".//svg")) == 3
    said = words(page)
    assert "random - ils" in said
    assert "performance" in said
    assert "Performance over time" in said


def test_chart_places_values_between_its_ends() -> None:
    x = np.array([1.0, 10.0, 100.0])
    series = [Series("a", x, np.array([1.0, np.nan, 3.0]), points=True)]
    svg = ElementTree.fromstring(chart(series, PlotAxis("x", log=True), PlotAxis("y")))
    places = [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in svg.iter("circle")]
    assert places == [(64.0, 320.0), (704.0, 12.0)]
    empty = [Series("a", np.zeros(0), np.zeros(0))]
    nothing = ElementTree.fromstring(chart(empty, PlotAxis("x"), PlotAxis("y", log=True)))
    assert not list(nothing.iter("circle"))


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        write_text(tmp_path / "no" / "x.html", "")
