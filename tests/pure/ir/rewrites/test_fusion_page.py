"""docs/fusion.md is true: its sessions print what they show, its table has every refusal's code."""

from __future__ import annotations

import doctest
import re

from support.paths import ROOT

from autosched.ir.rewrites.refusal import CODES

PAGE = ROOT / "docs" / "fusion.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_sessions() -> None:
    text = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(text, {}, "fusion.md", str(PAGE), 0)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    assert result.attempted >= 10
    assert result.failed == 0, "".join(report)


def test_every_code_of_a_refusal_is_explained() -> None:
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", TEXT, re.MULTILINE)) == set(CODES)
