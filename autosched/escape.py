r"""Text of other people in files of a language: a comment, a string or a name there, and never code.

Docstrings, names and program texts hold anything that Python allows. Every file that holds them gets them from here.

>>> in_comment("ends here */ int x; \\")
'ends here * / int x; \\ .'
>>> c_string('say "50 %??/"')
'"say \\"50 %\\?\\?/\\""'
>>> print(python_docstring('say "é" \\')[3:-3])
say \"é\" \\
>>> llvm_text("%a, %é")
'%a, %$e9$'
>>> html_text("</script>\x00")
'&lt;/script&gt;\\x00'
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape
from textwrap import wrap
from typing import Any

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    r"""One line: what does not print (line ends, controls, marks that turn the direction of text, halves of pairs)
    stands as `\n`, `\x00` or `\u202e`."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def for_terminal(text: str) -> str:
    r"""Lines for a terminal, in which nothing moves the cursor, sets colours or turns the direction of text.

    >>> print(for_terminal("L2\x1b[31m"))
    L2\x1b[31m
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


def in_comment(text: str) -> str:
    r"""One line inside a comment of C, C++ or CUDA, of either kind.

    It opens and ends no comment, has no trigraph (`??/` is a backslash in C11), and does not go on to the next line.
    """
    text = printable(text.expandtabs(4)).rstrip()
    text = text.replace("??", "? ?").replace("??", "? ?")
    text = text.replace("*/", "* /").replace("/*", "/ *")
    return f"{text} ." if text.endswith("\\") else text


def comment_lines(text: str, width: int) -> Iterator[str]:
    """Running text as lines inside a comment, of some `width` characters at most."""
    for line in wrap(" ".join(map(printable, text.split())), width):
        yield in_comment(line)


def c_string(text: str) -> str:
    """A string literal of C, C++ and CUDA whose bytes are the text's, in UTF-8."""
    return '"' + "".join(map(_c_character, text.encode("utf-8", "backslashreplace"))) + '"'


def _c_character(byte: int) -> str:
    character = chr(byte)
    if character in '"\\?':
        return f"\\{character}"
    return character if 32 <= byte < 127 else f"\\{byte:03o}"


def python_docstring(text: str) -> str:
    """A string literal of Python on as many lines as the text: a docstring."""
    lines = text.replace("\\", "\\\\").replace('"', '\\"').split("\n")
    return '"""' + "\n".join(map(printable, lines)) + '"""'


def llvm_text(text: str) -> str:
    """LLVM's text in ASCII, as all its names are: a letter of a program's name that is none stands as its number
    between `$`, which Python's names do not have."""
    return text if text.isascii() else _NOT_ASCII.sub(lambda letter: f"${ord(letter[0]):x}$", text)


def html_text(text: str) -> str:
    """Text, or an attribute's value, of HTML and SVG."""
    return escape("\n".join(map(printable, text.expandtabs().split("\n"))))


def json_text(value: Any, **options: Any) -> str:
    """JSON that can be encoded: `json.dumps` with `options`, where halves of surrogate pairs stand as their numbers."""
    return _SURROGATE.sub(lambda half: ascii(half[0])[1:-1], json.dumps(value, ensure_ascii=False, **options))
