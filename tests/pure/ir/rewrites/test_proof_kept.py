"""Verdicts of claims are kept: by claim, what it is proved from, and whether roundings count."""

from __future__ import annotations

from pathlib import Path

from autosched.ir.dtypes import dtype
from autosched.ir.rewrites.proof import prove
from autosched.ir.value import Arith, Cast, Comparison, Literal, Scalar
from autosched.logic.questions import written_to

F32, BF16 = dtype("f32"), dtype("bf16")
X, Y, ZERO = Scalar("x", F32), Scalar("y", F32), Literal(0.0, F32)


def test_another_name_asks_no_second_time_and_keeps_its_own_words() -> None:
    claim = Comparison("==", Arith("+", X, Y, F32), Arith("+", Y, X, F32))
    one, other = prove("M: sum", claim), prove("Z: sum", claim)
    assert (one.verdict, one.by, one.name, other.name) == ("proved", "z3", "M: sum", "Z: sum")
    assert (one.claim, other.verdict, other.by) == (other.claim, one.verdict, one.by)


def test_a_verdict_is_of_what_it_was_proved_from() -> None:
    claim = Comparison(">=", Arith("+", X, Y, F32), X)
    assert prove("f", claim).verdict == "no"
    assert prove("f", claim, [Comparison(">=", Y, ZERO)]).verdict == "proved"
    assert prove("f", claim, [Comparison("<=", Y, ZERO)]).verdict == "no"
    assert prove("f", claim).verdict == "no"


def test_a_verdict_is_of_roundings_or_of_none() -> None:
    claim = Comparison("==", Cast(Cast(X, BF16), F32), X)
    assert [prove("f", claim, real=real).verdict for real in (True, False, True)] == ["proved", "no", "proved"]


def test_what_is_written_out_is_asked_each_time(tmp_path: Path) -> None:
    claim = Comparison("<=", ZERO, Arith("*", X, X, F32))
    for number in range(2):
        prove("f", claim)
        with written_to(tmp_path / str(number)):
            assert prove("f", claim).verdict == "proved"
        assert len(list((tmp_path / str(number)).iterdir())) == 1
