# ruff: noqa: E501  (programs stand on one line)
"""Strict typing and the rules of the language: what is refused, where it is shown, and what is suggested."""

from __future__ import annotations

import pytest

from autosched.errors import AutoschedError, ProgramError, UnknownNameError, UsageError
from autosched.ir import parse, with_sizes
from autosched.ir.nodes import Assign, Guard, Loop
from autosched.ir.program import Program
from autosched.ir.value import Cast, FromIndex, Literal

HEAD = 'def f(A: f32[m], B: s8[m], I: s32[m], C: f32[m], D: s8[m], g: f32, *, m=8, t="f16"):\n    for i in range(m):\n        '

REFUSED = [
    ("C[i] = A[i] + B[i]", "one dtype", "cast one of them"),
    ("C[i] = B[i]", "C[…] takes f32, and this is s8", "f32(…)"),
    ("C[i] = i", "needs a cast", "f32(i)"),
    ("C[i] = A[i] + i", "needs a cast", "f32(i)"),
    ("C[i] = 1 + 2.5", "every operand is a literal", "cast"),
    ("D[i] = 300", "does not fit s8", "s8 holds -128 to 127"),
    ("D[i] = 1.0", "no literal of integer dtype", "integer"),
    ("D[i] = inf", "no literal of integer dtype", "integer"),
    ("C[i] = 1e300", "does not fit f32", None),
    ("C[i] = A[i] // 2", "'//' takes integers", "floor(a / b)"),
    ("D[i] = B[i] / 2", "'/' takes floats", "//"),
    ("C[i] = A[i] >> 1", "takes integers", None),
    ("C[i] = ~A[i]", "'~' takes integers", None),
    ("D[i] = exp(B[i])", "exp takes floats", "f32(…)"),
    ("C[i] = popcount(A[i])", "popcount takes integers", None),
    ("C[i] = sat_f32(B[i])", "sat_ takes an integer dtype", None),
    ("C[i] = A[i] if i else 0", "a condition is needed", "!= 0"),
    ("C[i] = A[i] if B[i] else 0", "a condition is needed", "!= 0"),
    ("C[i] = i < 3", "not a condition", None),
    ("C[i] = A[i] > 0", "not a condition", "f32(1) if"),
    ("C[i] = (A[i] > 0) + A[i]", "not conditions", "and, or, not"),
    ("C[i] = A", "needs an index", "A[…]"),
    ("C[i] = A[i, i]", "A has 1 dimensions", "its shape is [8]"),
    ("C[i] = A[A[i]]", "an index is an integer", "s32(…)"),
    ("C[i] = A[1.5]", "an index is an integer", None),
    ("C[i] = A[i + 1]", "dimension 0 of A has extent 8, and the index i + 1 is 8 at i = 7", "guard"),
    ("C[i] = A[i - 1]", "the index i - 1 is -1 at i = 0", None),
    ("C[8] = 0", "the index 8 is 8", None),
    ("C[i * i] = 0", "multiplies two axes", None),
    ("C[i // (i + 1)] = 0", "not a positive constant", None),
    ("C[i] = AA[i]", "unknown name 'AA'", "did you mean 'A'?"),
    ("C[i] = sqr(A[i])", "unknown function 'sqr'", "did you mean 'sqrt'?"),
    ("C[i] = f23(A[i])", "unknown function 'f23'", "did you mean 'f32'?"),
    ("C[i] = max(A[i])", "two or more", None),
    ("C[i] = exp(A[i], A[i])", "exp takes 1 argument, and here are 2", None),
    ("C[i] = scalb(A[i])", "scalb takes 2 arguments, and here are 1", None),
    ("D[i] = scalb(B[i], B[i])", "scalb takes a float of 32 or 64 bits", None),
    ("C[i] = lookup(I[i], 1, 2, 3)", "lookup takes an integer and 2, 4, 8, … literals, and here are 3", None),
    ("C[i] = lookup(A[i], 1, 2)", "lookup takes an integer of 32 or 64 bits", None),
    ("C[i] = lookup(I[i], A[i], 2)", "lookup chooses among literals", None),
    ("C[i] /= 2", "no assigning form", None),
    ("x = A[i]\n        x = A[i]\n        C[i] = x", "assigned once", None),
    ("x = A[i]\n        A[i] = 0\n        C[i] = x", "written between", "after the write"),
    ("x = A[0]\n        for j in range(m):\n            C[j] = x\n            A[j] = 0", "written between", None),
    ("if i > 1:\n            x = A[i]\n        C[i] = x", "only inside the block above", None),
    ("for i in range(2):\n            C[i] = 0", "already has a meaning", None),
    ("for m in range(2):\n            C[i] = 0", "already has a meaning", None),
    ("for j in range(0, 8, 2):\n            C[j] = 0", "range takes no step", None),
    ("for j, k in grid(2):\n            C[j] = 0", "grid has 1 extents, and the loop 2 names", None),
    ("for j in [1, 2]:\n            C[j] = 0", "range(n), range(a, b) or grid", None),
    ("if i > 1:\n            C[i] = 0\n        else:\n            C[i] = 1", "an if has no else", None),
    ("T: f32[m]\n        C[i] = 0", "outside loops", None),
    (
        "C[i] = 0\n    T: f32[m]\n    for j in range(m):\n        T[j] += A[j]",
        "no = gives the intermediate tensor T a value",
        "T[…] = 0",
    ),
    (
        "C[i] = 0\n    T: f32[m]\n    for j in range(m):\n        C[j] = T[j]",
        "no = gives the intermediate tensor T a value",
        "T[…] = 0",
    ),
    ("assume(A <= 1)\n        C[i] = 0", "top level", None),
    ("D = 1", "already has a meaning", None),
    ("t = 1", "already has a meaning", None),
    ("C[i] = t", "is a dtype", None),
    ("C[i] = min", "is a function", None),
]


@pytest.mark.parametrize(("body", "message", "hint"), REFUSED, ids=[r[0][:40] for r in REFUSED])
def test_refused_with_place_and_advice(body: str, message: str, hint: str | None) -> None:
    with pytest.raises(ProgramError) as caught:
        parse(HEAD + body + "\n", "prog.py")
    e = caught.value
    assert message in e.message
    assert hint is None or hint in (e.hint or "")
    assert e.location is not None
    assert e.location.file == "prog.py"
    assert e.location.text == (HEAD + body).split("\n")[e.location.line - 1]
    assert 1 <= e.location.column <= len(e.location.text) + 1


def test_an_error_shows_file_line_column_and_the_line() -> None:
    with pytest.raises(ProgramError) as caught:
        parse(HEAD + "C[i] = A[i] + B[i]\n", "prog.py", first_line=11)
    assert str(caught.value) == (
        "prog.py:13:16: '+' takes operands of one dtype, and these are f32 and s8\n"
        "          C[i] = A[i] + B[i]\n"
        "                 ^\n"
        "help: cast one of them: f32(…) or s8(…)"
    )


def test_columns_count_characters() -> None:
    with pytest.raises(ProgramError) as caught:
        parse('def f(C: f32[1]):\n    """é"""; λ = wrong\n    C[0] = 0\n')
    assert caught.value.location is not None
    assert caught.value.location.column == 18


@pytest.mark.parametrize(
    ("shape", "defines", "message", "hint"),
    [
        ("n", {}, "A has a dimension n, and no size of that name is declared", "as in `…, *, n=64)`; -D n=… then"),
        ("n", {"n": 8}, "A has a dimension n, and no size of that name is declared", "-D n=… then sets it"),
        ("m, 2 * rows + 1", {}, "A has a dimension rows, and no size of", "`…, *, rows=64)`"),
        ("mm", {}, "unknown name 'mm'", "did you mean 'm'?"),
        ("m", {"m": 0}, "every dimension of A is at least 1, and m is 0", "set a larger size: -D m=…"),
        ("m - 9", {}, "m - 9 is -1", "set a larger size: -D m=…"),
        ("h", {}, "every dimension of A is at least 1, and h is 0", "set a larger size: -D m=…"),
        ("0", {}, "every dimension of A is at least 1, and it is 0", "write 1 or more"),
        ("m", {"m": -4}, "the size m=-4 is negative", "a dimension is 1 or more, any other size 0 or more: -D m=…"),
        ("m", {"m": "-4..4"}, "the range -4..4 has negative sizes", "-D m=1..4096"),
        ("m", {"m": "5..4"}, "the range 5..4 is empty", "-D m=1..4096"),
    ],
)
def test_sizes_that_cannot_be_right_say_how_they_are_set(
    shape: str, defines: dict[str, object], message: str, hint: str
) -> None:
    sizes = ", *, m=8" if "m" in shape or shape == "h" else ""
    derived = "    h = m - 8\n" if shape == "h" else ""
    with pytest.raises(AutoschedError) as caught:
        parse(f"def f(A: f32[{shape}], C: f32[4]{sizes}):\n{derived}    C[0] = 0\n", sizes=defines)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("sizes", "kind", "message"),
    [
        ({"n": 4}, UnknownNameError, "unknown size or dtype 'n'"),
        ({"m": 0}, ProgramError, "every dimension of A is at least 1, and m is 0"),
        ({"m": -3}, UsageError, "negative"),
        ({"m": "f32"}, UsageError, "m is a size"),
        ({"m": "many"}, UsageError, "neither an integer"),
        ({"m": 1.5}, UsageError, "integer"),
        ({"m": True}, UsageError, "integer"),
        ({"m": "9..4"}, UsageError, "empty"),
        ({"m": "0..4"}, ProgramError, "m is at least 0"),
        ({"m": 2**60}, UsageError, "too large"),
        ({"t": 4}, UsageError, "t is a dtype"),
        ({"t": "f33"}, UsageError, "did you mean 'f32'"),
    ],
)
def test_defines_are_checked(sizes: dict[str, object], kind: type[AutoschedError], message: str) -> None:
    with pytest.raises(kind) as caught:
        parse(HEAD + "C[i] = f32(t(A[i]))\n", sizes=sizes)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_unknown_defines_suggest_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        parse("def f(C: f32[rows], *, rows=4):\n    C[0] = 0\n", sizes={"row": 3})
    assert caught.value.hint is not None
    assert "did you mean 'rows'?" in caught.value.hint


def test_a_size_without_default_must_be_given() -> None:
    with pytest.raises(UsageError, match="needs a value for m"):
        parse("def f(C: f32[m], *, m):\n    C[0] = 0\n")
    assert parse("def f(C: f32[m], *, m):\n    C[0] = 0\n", sizes={"m": "7"}).tensors["C"].extents == (7,)


def first(program: Program) -> Assign:
    node = program.body[0]
    while isinstance(node, Loop | Guard):
        node = node.body[0]
    return node


def values(body: str) -> Assign:
    return first(parse(HEAD + body + "\n"))


def test_normal_forms() -> None:
    assert values("C[i] = C[i] + A[i]") == values("C[i] += A[i]") == values("C[i] = A[i] + C[i]")
    assert values("C[i] = C[i] - A[i]").op == "-="
    assert values("C[i] = A[i] - C[i]").op == "="
    assert values("C[i] = max(C[i], A[i])").op == values("C[i] = max(A[i], C[i])").op == "max="
    assert values("C[i] = f32(A[i])") == values("C[i] = A[i]")
    assert isinstance(values("C[i] = f32(B[i])").value, Cast)
    assert values("C[i] = -1").value == Literal(-1.0, parse(HEAD + "C[i] = 0").tensors["C"].dtype)
    assert isinstance(values("C[i] = f32(i * 2)").value, FromIndex)
    assert values("D[i] = s8(300)").value.value == 44  # type: ignore[union-attr]
    assert values("D[i] = sat_s8(300)").value.value == 127  # type: ignore[union-attr]


def test_guards_make_accesses_legal_and_keep_their_orientation() -> None:
    program = parse(HEAD + "if 0 <= i - 1 < m - 2:\n            C[i] = A[i - 1] + A[i + 1]\n")
    assert "if 0 <= i - 1 and i - 1 < 6:" in str(program)
    parse(HEAD + "C[i] = A[i - 1] if i >= 1 else 0\n")
    parse(HEAD + "C[i] = A[i - 1] if i >= 1 and A[i - 1] > 0 else 0\n")
    parse(HEAD + "C[i] = 0 if i < 1 or A[i - 1] > 0 else 1\n")
    with pytest.raises(ProgramError, match="is -1 at i = 0"):
        parse(HEAD + "C[i] = A[i - 1] if A[i - 1] > 0 and i >= 1 else 0\n")
    assert not isinstance(parse(HEAD + "if i < m and i >= 0:\n            C[i] = 0\n").body[0].body[0], Guard)  # type: ignore[union-attr]


def test_axis_names_become_unique() -> None:
    text = "def f(C: f32[4]):\n" + "    for i in range(4):\n        C[i] = 0\n" * 3
    assert [s.axes[0].name for s in parse(text).stages] == ["i", "i_2", "i_3"]
    taken = "def f(C: f32[4], i_2: f32):\n" + "    for i in range(4):\n        C[i] = 0\n" * 2
    assert [s.axes[0].name for s in parse(taken).stages] == ["i", "i_3"]


def test_symbolic_sizes_are_proved_in_bounds() -> None:
    text = "def f(A: f32[m + 2], C: f32[m], *, m=8):\n    for i in range(m):\n        C[i] = A[i] + A[i + 2]\n"
    program = parse(text, sizes={"m": "1..4096"})
    assert program.symbolic == {"m": (1, 4096)}
    with pytest.raises(ProgramError, match=r"the index i \+ 3"):
        parse(text.replace("i + 2]\n", "i + 3]\n"), sizes={"m": "1..4096"})


def test_assumptions() -> None:
    def assumed(condition: str, **sizes: object) -> object:
        text = f"def f(A: f32[m], B: s8[m], g: f32, C: f32[m], *, m=8):\n    assume({condition})\n    C[0] = 0\n"
        a = parse(text, sizes=sizes).assumptions[0]  # type: ignore[arg-type]
        return a.subject, a.low, a.high, a.multiple

    assert assumed("-64 <= B <= 64") == ("B", -64, 64, None)
    assert assumed("-64 < B < 64") == ("B", -63, 63, None)
    assert assumed("64 >= B") == ("B", None, 64, None)
    assert assumed("B >= -3") == ("B", -3, None, None)
    assert assumed("0.5 <= g") == ("g", 0.5, None, None)
    assert assumed("m % 4 == 0") == ("m", None, None, 4)
    assert assumed("m <= 100", m="1..50") == ("m", None, 100, None)
    for wrong in ("m % 3 == 0", "m > 8", "A < 1", "3 <= B <= 2", "A", "B + 1 <= 2", "Q <= 1", "B <= g", "1 < 2 < 3"):
        with pytest.raises(ProgramError):
            assumed(wrong)


def test_several_functions() -> None:
    text = "def f(C: f32[1]):\n    C[0] = 0\ndef g(C: f32[1]):\n    C[0] = 1\n"
    assert parse(text, function="g").name == "g"
    with pytest.raises(UsageError, match="several functions: f, g") as several:
        parse(text, filename="two.py")
    assert several.value.hint == "choose one: two.py:f, two.py:g"
    with pytest.raises(UnknownNameError):
        parse(text, function="h")


@pytest.mark.slow
def test_proofs_are_asked_a_bounded_number_of_times() -> None:
    """Products of symbolic sizes are hard for a solver; reading such a program still ends soon."""
    head = 'def f(A: f32[m * n * k], C: f32[m * n * k], *, m="1..400", n="1..400", k="1..400"):\n    for i, j, p in grid(m, n, k):\n'
    line = "        C[(i * n + j) * k + p] = A[(i * n + j) * k + p]\n"
    parse(head + line * 40)
    many = "".join(f"        if i + {k} < 8:\n            C[i + {k}] = 0\n" for k in range(1500))
    with pytest.raises(ProgramError, match="need a proof"):
        parse(f"def f(C: f32[8]):\n    for i in range(3000):\n{many}")
    same = "        if i < 8:\n            C[i] = 0\n" * 1500
    assert len(parse(f"def f(C: f32[8]):\n    for i in range(3000):\n{same}").stages) == 1500


def test_sizes_filled_in_later_must_be_as_assumed() -> None:
    program = parse('def f(C: f32[m], *, m="4..64"):\n    assume(m % 4 == 0)\n    C[0] = 0\n')
    assert with_sizes(program, {"m": 8}).tensors["C"].extents == (8,)
    for wrong in (6, 2, 128):
        with pytest.raises(UsageError):
            with_sizes(program, {"m": wrong})
