# ruff: noqa: E501  (programs stand on one line)
"""Every example of docs/language.md: programs parse and run, sessions print what they show, refusals say what they say."""

from __future__ import annotations

import doctest
import re

import numpy as np
import pytest
from support.paths import ROOT

import autosched.ir as ir
from autosched.errors import ProgramError

PAGE = ROOT / "docs" / "language.md"
BLOCKS = re.findall(r"^```([a-z ]+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
PROGRAMS = [text for kind, text in BLOCKS if kind == "python"]
REFUSED = [(text, BLOCKS[k + 1][1]) for k, (kind, text) in enumerate(BLOCKS) if kind == "python refused"]


def test_the_page_has_examples() -> None:
    assert len(PROGRAMS) >= 6
    assert len(REFUSED) >= 3


@pytest.mark.parametrize("text", PROGRAMS, ids=[t.split("(")[0][4:] for t in PROGRAMS])
def test_programs(text: str) -> None:
    program = ir.parse(text)
    assert ir.parse(str(program)) == program
    small = {n: min(v, 16) for n, v in program.sizes.items() if n not in ("words",)}
    program = ir.parse(text, sizes=small)
    arrays, scalars = ir.split_inputs(program, ir.random_inputs(program, np.random.default_rng(0)))
    assert set(ir.run(program, arrays, scalars)) == set(program.outputs)


@pytest.mark.parametrize(("text", "answer"), REFUSED)
def test_refusals(text: str, answer: str) -> None:
    with pytest.raises(ProgramError) as caught:
        ir.parse(text, "example.py")
    assert str(caught.value) == answer.rstrip("\n")


def test_sessions() -> None:
    text = "\n".join(body for kind, body in BLOCKS if kind == "pycon")
    test = doctest.DocTestParser().get_doctest(text, {}, "language.md", str(PAGE), 0)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    assert result.attempted >= 10
    assert result.failed == 0, "".join(report)
