"""Instructions whose sum starts from an operand of its own or from zero: what is one, what is none, and their keys."""

from __future__ import annotations

import numpy as np
import pytest

from autosched.errors import SpecError
from autosched.ir import parse
from autosched.tensorize import match
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.numerics.model import issue
from autosched.tensorize.spec.load import load_text
from autosched.tensorize.tied import tied


def load(body: str, more: str = "", isa: str = "made") -> Intrinsic:
    lines = "".join(f"      {line}\n" for line in body.splitlines())
    return load_text(f"isa: {isa}\nintrinsics:\n  - name: up\n    semantics: |\n{lines}{more}")[0]


HEAD = "def f(a: s8[4, 2], b: s8[4, 2], c: s32[4], d: s32[4]):\n"
ADDS = "  for k in range(2):\n   d[i] += s32(a[i, k]) * s32(b[i, k])\n"
BESIDE = HEAD + " for i in range(4):\n  d[i] = c[i]\n" + ADDS
PLAIN = """def f(a: s8[4, 2], b: s8[4, 2], d: s32[4]):
 for i, k in grid(4, 2):
  d[i] += s32(a[i, k]) * s32(b[i, k])"""
ZERO = BESIDE.replace("c: s32[4], ", "").replace("= c[i]", "= 0")


@pytest.mark.parametrize(
    "text",
    [
        BESIDE,
        HEAD + " for i in range(4):\n  d[i] = c[i]\n for i in range(4):\n" + ADDS,
        HEAD.replace("\n", "\n t: s32[4]\n")
        + " for i in range(4):\n  t[i] = c[i]\n"
        + ADDS.replace("d[", "t[")
        + " for i in range(4):\n  d[i] = t[i]",
        BESIDE.replace("d[i] += s32(a[i, k]) * s32(b[i, k])", "d[i] = s32(a[i, k]) * s32(b[i, k]) + d[i]"),
    ],
    ids=["beside", "before", "temporary", "written_out"],
)
def test_an_operand_that_starts_the_sum_is_the_target(text: str) -> None:
    found = load(text)
    assert list(found.operands) == ["a", "b", "d"]
    assert found.accumulates
    assert not found.from_zero
    assert [a.name for a in found.reduction] == ["k"]


def test_it_is_the_instruction_that_adds() -> None:
    assert load(BESIDE).program.stages[0].assign.value == load(PLAIN).program.stages[0].assign.value


def test_what_starts_from_zero_does_not_take_what_its_target_holds() -> None:
    found = load(ZERO)
    assert found.from_zero
    assert found.chain_cycles(9.0) == 0.0
    ones = {n: np.ones((1, *o.shape), o.dtype.numpy) for n, o in found.operands.items()}
    assert (issue(found, ones) == 2).all()
    assert (issue(load(PLAIN), ones) == 3).all()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("d[i] = c[i]", "d[i] = c[3 - i]", "d[i] starts from c[3 - i], which is another element"),
        ("d[i] = c[i]", "d[i] = c[i] + 1", "d starts from c[i] + 1: a start is 0, or an operand as it is"),
        ("d[i] = c[i]", "d[i] = 1", ": a start is 0, or an operand as it is"),
        ("range(4):\n  d[i] = c[i]\n", "range(3):\n  d[i] = c[i]\n for i in range(4):\n", "fills a part of d"),
        ("  d[i] = c[i]\n" + ADDS, ADDS + "  d[i] = c[i]\n", "d gets another value behind its sum"),
        ("s32(a[i, k]) *", "(s32(a[i, k]) + c[i]) *", "c is read elsewhere, too, and not only as the start"),
        ("d: s32[4]", "d: s32[4], e: s32[4]", "the operand 'e' is not used"),
        ("c: s32[4]", "c: s32[5]", "d starts from c, whose shape is 5, and that of d is 4"),
        ("c: s32[4]", "c: s16[4]", "d[…] takes s32, and this is s16"),
        ("d[i] = c[i]", "d[i] = -c[i]", "d starts from -c[i]: a start is 0, or an operand as it is"),
        ("   d[i] +=", "   if d[i] > 0:\n    d[i] +=", "a condition reads d"),
    ],
)
def test_what_is_no_start(old: str, new: str, said: str) -> None:
    with pytest.raises(SpecError) as error:
        load(BESIDE.replace(old, new))
    assert said in error.value.message


def test_a_sum_of_which_something_is_made_is_two_instructions() -> None:
    head = HEAD.replace("d: s32", "d: s8").replace("\n", "\n t: s32[4]\n")
    text = head + BESIDE.replace(HEAD, "").replace("d[", "t[")
    with pytest.raises(SpecError) as error:
        load(text + " for i in range(4):\n  d[i] = sat_s8(t[i] >> 7)")
    assert "holds a sum that does more than start, add up and be copied" in error.value.message
    assert "describe two instructions" in (error.value.hint or "")


REGISTERS = "    operands: {a: {packed: [i, k]}, c: {packed: [i]}, d: {packed: [i]}}\n"


def test_what_is_said_of_one_register_is_said_of_the_other() -> None:
    said = '    operands: {c: {register: {c: __m128i}}, a: {register: {c: int64_t}}, b: {register: {c: int64_t}}}\n'
    found = load(BESIDE, said + '    emit: {c: "dot({c}, {a}, {b})"}\n')
    assert found.emit == {"c": "dot({d}, {a}, {b})"}
    assert found.operands["d"].registers == {"c": "__m128i"}
    load(BESIDE, REGISTERS)
    with pytest.raises(SpecError, match="both are one register, and d has other keys"):
        load(BESIDE, REGISTERS.replace("c: {packed: [i]}", "c: {order: [3 - e]}"))


def test_a_statement_names_one_register() -> None:
    said = '    operands: {a: {registers: 2 x b32}, b: {registers: 2 x b32}, d: {registers: 4 x s32}}\n'
    with pytest.raises(SpecError, match=r"\{c\} and \{d\} are one register") as error:
        load(BESIDE, said + '    emit: "dot {d}, {a}, {b}, {c};"\n', "cuda")
    assert "name it {d}" in (error.value.hint or "")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("    overwrite: scale_d = 0\n", "overwrite: the semantics starts its sum from zero already"),
        ("    timing: {latency: 4, interval: 1, chain: 2}\n", "timing.chain: it waits for no accumulator"),
        ("    pseudocode: |\n      def f(a: s8[4, 2]):\n       d[0] = 0\n", "pseudocode of an instruction whose sum"),
        ("    kind: copy\n", "kind is copy"),
    ],
)
def test_keys_that_mean_nothing_from_zero(more: str, said: str) -> None:
    with pytest.raises(SpecError) as error:
        load(ZERO, more)
    assert said in error.value.message


def test_a_text_from_zero_does_not_name_the_target() -> None:
    keys = '    operands: {a: {register: {c: int64_t}}, b: {register: {c: int64_t}}, d: {register: {c: __m128i}}}\n'
    load(ZERO, keys + '    emit: {c: "dot({a}, {b})"}\n')
    with pytest.raises(SpecError, match=r"\{d\} is named, and the semantics overwrites it"):
        load(ZERO, keys + '    emit: {c: "dot({d}, {a}, {b})"}\n')


def test_a_sum_of_integers_that_is_written_out_starts_from_zero() -> None:
    """With registers given; without, each element is an operand of its own, as a program may write it out, too."""
    pairs = "s32(a[i, 0]) * s32(b[i, 0]) + s32(a[i, 1]) * s32(b[i, 1])"
    text = f"def f(a: s8[4, 2], b: s8[4, 2], d: s32[4]):\n for i in range(4):\n  d[i] = {pairs}"
    assert load(text, "    operands: {a: {}, b: {}}\n").from_zero
    assert list(load(text).operands) == ["a_0", "a_1", "b_0", "b_1", "d"]
    with pytest.raises(SpecError, match="dimension 1 of a is indexed by 0"):
        load(text.replace(" + ", " - "), "    operands: {a: {}, b: {}}\n")
    with pytest.raises(SpecError, match="dimension 1 of a is indexed by 0"):
        load(text.replace("s8", "f16").replace("s32", "f32"), "    operands: {a: {}, b: {}}\n")


FUSED = "def f(a: f32[8], b: f32[8], c: f32[8], d: f32[8]):\n for i in range(8):\n  d[i] = fma(a[i], b[i], c[i])"


def test_what_adds_an_operand_to_a_product_sums_too() -> None:
    call = "call <8 x float> @llvm.fma.v8f32(<8 x float> {a}, <8 x float> {b}, <8 x float> {c})"
    found = load(FUSED, f'    emit: {{llvm: "{call}"}}\n')
    sums = tied(found)
    assert sums is not None
    assert sums.accumulates
    assert list(sums.operands) == ["a", "b", "d"]
    assert sums.emit["llvm"].endswith("<8 x float> {d})")


@pytest.mark.parametrize(
    ("old", "new", "more"),
    [
        ("fma(a[i], b[i], c[i])", "a[i] * c[i] - b[i] * c[i]", ""),  # what it holds is no summand
        ("fma(a[i], b[i], c[i])", "max(a[i] * b[i] + c[i], 0.0)", ""),
        (", b: f32[8], c: f32[8]", ", c: f32[8]", "plain"),  # an addition of one element
        ("c: f32[8]", "c: f16[8]", "wide"),
        ("", "", "    numerics: {relative: 2^-10}\n"),
        ("", "", "    operands: {c: {order: [7 - e]}}\n"),
    ],
)
def test_what_does_not_sum(old: str, new: str, more: str) -> None:
    text = FUSED.replace(old, new)
    text = text.replace("fma(a[i], b[i], c[i])", "a[i] + c[i]") if more == "plain" else text
    text = text.replace("fma(a[i], b[i], c[i])", "fma(a[i], b[i], f32(c[i]))") if more == "wide" else text
    assert tied(load(text, more if ":" in more else "")) is None


def test_a_transposed_start_is_told_as_one() -> None:
    text = "def f(a: s32[4, 4], c: s32[4, 4], d: s32[4, 4]):\n for i, j in grid(4, 4):\n  d[i, j] = c[j, i]\n"
    with pytest.raises(SpecError) as error:
        load(text + "  for k in range(4):\n   d[i, j] += a[i, k] * a[k, j]")
    assert "results overlap: 2 statements write d, and d[i, j] starts from c[j, i]" in error.value.message
    assert error.value.message.endswith("another element (transposed)")
    assert error.value.location is not None
    assert "d[i, j] = c[j, i]" in str(error.value)


def test_a_start_inside_of_the_sum_is_told() -> None:
    text = "def f(a: s32[4, 4], d: s32[4]):\n for i in range(4):\n  for k in range(4):\n"
    text += "   d[i] = 0\n   d[i] += a[i, k]"
    with pytest.raises(SpecError) as error:
        load(text)
    assert "d starts anew in each turn of the loop over k" in error.value.message


def test_a_forgotten_start_is_told() -> None:
    with pytest.raises(SpecError) as error:
        load(BESIDE.replace("  d[i] = c[i]\n", ""))
    assert error.value.message.endswith("the operand 'c' is not used")
    assert error.value.hint == "where the sum starts from it: `d[i] = c[i]` before it; else leave it out"


def test_a_register_of_an_unknown_printer_is_refused() -> None:
    with pytest.raises(SpecError) as error:
        load(PLAIN, "    operands: {d: {register: {llmv: <4 x i32>}}}\n")
    assert "operand d: register: nothing is printed as 'llmv'" in error.value.message
    assert (error.value.hint or "").startswith("did you mean 'llvm'? known: llvm, c, ")


def test_a_sum_that_is_written_out_says_what_makes_it_one() -> None:
    text = "def f(a: s32[4, 2], b: s32[4, 2], d: s32[4]):\n for i in range(4):\n"
    text += "  d[i] = a[i, 0] * b[i, 0] + a[i, 1] * b[i, 1]"
    head = "def g(A: s32[8, 6], B: s32[8, 6], D: s32[8]):\n"
    program = parse(head + " for i, k in grid(8, 6):\n  D[i] += A[i, k] * B[i, k]")
    (found,) = match(program, [load(text, "    operands: {d: {packed: [i]}}\n")], adapt=False)
    assert found.reason is not None
    assert "`operands: {a: {}, b: {}}` says that it sums elements of one operand" in (found.reason.fix or "")
    (whole,) = match(program, [load(text, "    operands: {a: {}, b: {}}\n")])
    assert whole.verdict == "match"
