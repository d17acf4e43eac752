"""Hostile and broken texts: each gives a clean error with a place, quickly, and nothing is ever executed."""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched.errors import AutoschedError, ProgramError
from autosched.ir import einsum, load, parse, resolve

HEAD = "def f(A: f32[m], C: f32[m], *, m=8):\n    for i in range(m):\n        "
BODIES = {
    "import": "C[i] = __import__('os').system('touch /tmp/autosched-was-here')",
    "call of a call": "C[i] = (lambda: 1)()",
    "attribute": "C[i] = A.__class__.__bases__",
    "comprehension": "C[i] = [x for x in A][0]",
    "generator": "C[i] = max(x for x in A)",
    "f-string": "C[i] = f'{A}'",
    "walrus": "C[i] = (q := A[i])",
    "power": "C[i] = 9**9**9",
    "huge power in an index": "C[9**9**9] = 0",
    "eval": "eval('1')",
    "exec": "exec('import os')",
    "open": "open('/etc/passwd')",
    "print": "print(A)",
    "while": "while True: pass",
    "import statement": "import os",
    "nested def": "def g(): pass",
    "class": "class X: pass",
    "try": "try:\n            pass\n        except E:\n            pass",
    "with": "with A: pass",
    "global": "global A",
    "del": "del A",
    "return": "return A",
    "yield": "yield A[i]",
    "raise": "raise A",
    "assert": "assert A[i] > 0",
    "await": "C[i] = await A",
    "starred": "C[i] = max(*A)",
    "keyword": "C[i] = max(A[i], b=1)",
    "slice": "C[i] = A[0:2]",
    "string": "C[i] = 'x'",
    "bytes": "C[i] = b'x'",
    "complex": "C[i] = 1j",
    "ellipsis": "C[i] = ...",
    "none": "C[i] = None",
    "matmul operator": "C[i] = A[i] @ A[i]",
    "is": "C[i] = A[i] if A[i] is C else 0",
    "in": "C[i] = A[i] if i in A else 0",
    "chained targets": "C[i] = A[i] = 1",
    "unpacking": "C[i], A[i] = 1, 2",
    "big literal": "C[i] = " + "9" * 4000,
    "too big literal": "C[i] = " + "9" * 10000,
    "big index": "C[i] = A[i + 99999999999999999999999999]",
    "parentheses": "C[i] = " + "(" * 100_000 + "1" + ")" * 100_000,
    "brackets": "C[i] = " + "A[" * 5_000 + "0" + "]" * 5_000,
    "long sum": "C[i] = " + " + ".join(["A[i]"] * 20_000),
    "minus signs": "C[i] = " + "-" * 100_000 + "A[i]",
    "nots": "C[i] = A[i] if " + "not " * 50_000 + "i < 1 else 0",
    "choices": "C[i] = " + "A[i] if i < 1 else " * 5_000 + "0",
    "null": "C[i] = \0",
    "form feeds and nonsense": "\x0c\x00\x0b",
    "surrogate": "C[i] = \ud800",
    "doubling locals": "\n        ".join(
        ["x0 = A[i] + A[i]", *(f"x{k + 1} = x{k} + x{k}" for k in range(60)), "C[i] = x60"]
    ),
    "squared sizes": "\n        ".join(["y0 = 99999", *(f"y{k + 1} = y{k} * y{k}" for k in range(30)), "C[i] = y30"]),
}


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the text was executed")

    monkeypatch.setattr("os.system", refuse)
    monkeypatch.setattr(builtins, "eval", refuse)
    monkeypatch.setattr(builtins, "exec", refuse)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.usefixtures("nothing_runs")
def test_hostile_bodies_are_refused(name: str) -> None:
    before = time.monotonic()
    with pytest.raises(ProgramError) as caught:
        parse(HEAD + BODIES[name] + "\n")
    assert time.monotonic() - before < 10  # a hang, not a timing
    assert caught.value.location is not None
    assert len(str(caught.value)) < 2000
    assert not Path("/tmp/autosched-was-here").exists()


SIGNATURES = {
    "default call": "def f(C: f32[1], *, m=print(1)):\n    C[0] = 0",
    "default lambda": "def f(C: f32[1], *, m=lambda: 1):\n    C[0] = 0",
    "decorator": "@print\ndef f(C: f32[1]):\n    C[0] = 0",
    "return annotation": "def f(C: f32[1]) -> print('x'):\n    C[0] = 0",
    "annotation call": "def f(C: print('x')):\n    C[0] = 0",
    "annotation string": "def f(C: 'f32[1]'):\n    C[0] = 0",
    "no annotation": "def f(C):\n    C[0] = 0",
    "args": "def f(*C):\n    C[0] = 0",
    "positional only": "def f(C: f32[1], /):\n    C[0] = 0",
    "async": "async def f(C: f32[1]):\n    C[0] = 0",
    "module code": "import os\ndef f(C: f32[1]):\n    C[0] = 0",
    "no function": "x = 1",
    "empty": "",
    "nothing written": "def f(C: f32[1]):\n    pass",
    "same name twice": "def f(C: f32[1], *, C=1):\n    C[0] = 0",
    "size zero": "def f(C: f32[m], *, m=0):\n    C[0] = 0",
    "negative shape": "def f(C: f32[m - 9], *, m=8):\n    C[0] = 0",
    "huge shape": "def f(C: f32[m, m], *, m=1099511627776):\n    C[0, 0] = 0",
    "squared shape": "def f(C: f32[m * m * m * m * m], *, m=1099511627776):\n    C[0] = 0",
    "word as name": "def f(max: f32[1]):\n    max[0] = 0",
    "dtype as name": "def f(f32: f32[1]):\n    f32[0] = 0",
    "const written": "def f(C: const[f32[1]]):\n    C[0] = 0",
    "unknown dtype": "def f(C: f31[1]):\n    C[0] = 0",
    "division by zero": "def f(C: f32[m // (m - 8)], *, m=8):\n    C[0] = 0",
    "deep blocks": "def f(C: f32[1]):\n"
    + "".join(" " * (k + 4) + f"for i{k} in range(1):\n" for k in range(95))
    + " " * 120
    + "C[0] = 0",
    "deep elif": "def f(C: f32[1], s: s32):\n    if s == 0:\n        C[0] = 0\n"
    + "    elif s == 1:\n        C[0] = 0\n" * 3000,
}


@pytest.mark.parametrize("name", SIGNATURES)
@pytest.mark.usefixtures("nothing_runs")
def test_hostile_signatures_are_refused(name: str) -> None:
    with pytest.raises(AutoschedError):
        parse(SIGNATURES[name])


def test_long_texts_are_refused() -> None:
    with pytest.raises(ProgramError, match="at most 1,000,000"):
        parse("def f(C: f32[1]):\n    C[0] = " + "1 + " * 3_000_000 + "1")


def test_hostile_files(tmp_path: Path) -> None:
    binary = tmp_path / "binary.py"
    binary.write_bytes(bytes(range(256)) * 40)
    with pytest.raises(AutoschedError, match="UTF-8"):
        load(binary)
    runs = tmp_path / "runs.py"
    runs.write_text(f"open({str(tmp_path / 'made')!r}, 'w')\ndef f(C: f32[1]):\n    C[0] = 0\n")
    with pytest.raises(ProgramError, match="functions only"):
        load(runs)
    assert not (tmp_path / "made").exists()
    for bad in (tmp_path, tmp_path / "missing.py", "\0.py", "x" * 5000 + ".py"):
        with pytest.raises(AutoschedError):
            load(bad)


ALPHABET = "ABCimnk0123456789+-*/%<>=&|^~()[]:,.\"'_ \n\t@#\\{}éλ\0"
GOOD = HEAD + "x = A[i] * f32(2)\n        if 1 <= i < m - 1:\n            C[i] += x if x > 0 else A[i - 1]\n"


def answer(action: Callable[[], object]) -> str:
    """What a person sees: an error's text, or that there is none. Any other exception fails the test."""
    try:
        action()
    except AutoschedError as e:
        return str(e)
    return "accepted"


@pytest.mark.slow
@examples(200)
@given(st.text(alphabet=ALPHABET, max_size=60) | st.text(max_size=40))
def test_any_text_gives_a_program_or_a_clean_error(text: str) -> None:
    assert answer(lambda: parse(text))
    assert answer(lambda: parse(HEAD + text))


@examples(300)
@given(st.integers(0, len(GOOD)), st.integers(0, 12), st.text(alphabet=ALPHABET, max_size=8))
def test_mutated_programs_give_a_program_or_a_clean_error(at: int, cut: int, put: str) -> None:
    assert answer(lambda: parse(GOOD[:at] + put + GOOD[at + cut :]))


@examples(150)
@given(st.text(max_size=12))
def test_any_define_or_spec_gives_a_clean_answer(text: str) -> None:
    assert answer(lambda: parse(GOOD, sizes={"m": text}))
    assert answer(lambda: parse(GOOD, sizes={text: 4}))
    assert answer(lambda: einsum(text))
    assert answer(lambda: resolve(text))
