"""Text of a program in files of a language: whatever it holds, it stays a comment, a string or a name."""

from __future__ import annotations

import ast
import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hostile import DOCS
from support.match.examples import examples

from autosched.cli.output import answer, complain
from autosched.escape import (
    c_string,
    comment_lines,
    for_terminal,
    html_text,
    in_comment,
    json_text,
    llvm_text,
    python_docstring,
)

TEXTS = st.text() | st.text("*/\\?\n\" '@") | st.sampled_from(list(DOCS.values()))


@given(TEXTS)
@examples(300)
def test_a_comment_stays_one(text: str) -> None:
    line = in_comment(text)
    assert line.isprintable()
    for other in (line, re.sub(r"\?\?/", r"\\", line)):  # trigraphs, where a compiler reads them
        assert "*/" not in other
        assert "/*" not in other
        assert not other.rstrip().endswith("\\")
    assert "??" not in line


@given(TEXTS)
@examples(200)
def test_lines_of_a_comment_hold_every_word(text: str) -> None:
    lines = list(comment_lines(text, 40))
    assert all(line and line == in_comment(line) for line in lines)
    assert bool(lines) == bool(text.split())


@given(TEXTS)
@examples(300)
def test_a_docstring_says_the_text(text: str) -> None:
    literal = python_docstring(text)
    literal.encode()
    assert ast.literal_eval(literal) == text


@given(TEXTS)
@examples(300)
def test_json_is_read_back(text: str) -> None:
    written = json_text({text: [text]})
    written.encode()
    assert json.loads(written) == {text: [text]}


@given(TEXTS)
@examples(300)
def test_html_shows_the_text(text: str) -> None:
    page = f"<p title='{html_text(text)}'>{html_text(text)}</p>"
    page.encode()
    found = ElementTree.fromstring(page)
    shown = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text.expandtabs())
    assert len(found) == 0
    assert found.text == (shown or None)


@pytest.mark.parametrize("text", DOCS.values())
def test_a_string_of_c_is_its_bytes(text: str) -> None:
    literal = c_string(text)
    assert literal.isascii()
    assert "??" not in literal
    assert ast.literal_eval(f"b{literal}".replace("\\?", "?")) == text.encode("utf-8", "backslashreplace")


def test_names_of_llvm_stay_apart() -> None:
    names = ["é", "è", "e", "e9", "大", "é1", "e91"]
    assert len({llvm_text(n) for n in names}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z$._][A-Za-z0-9$._]*", llvm_text(n)) for n in names)


@pytest.mark.parametrize("text", ["\x1b[2J", "\x9b31m", "\r", "\x08", "\u202e", "\u2028", "\x07"])
def test_what_a_terminal_is_told_moves_nothing(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An error shows what files hold, and files come from elsewhere."""
    complain(f"no memory 'L2{text}'\n    - name: L2", hint=f"{text}\tL2, é 大")
    answer(f"L2{text}")
    said = capsys.readouterr()
    assert text not in said.err + said.out
    assert said.err.count("\n") == 3
    assert "\tL2, é 大\n" in said.err
    assert for_terminal("one\n\ttwo é 大 µs ±") == "one\n\ttwo é 大 µs ±"
