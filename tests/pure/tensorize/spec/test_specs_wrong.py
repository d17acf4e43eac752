"""Deliberately wrong descriptions (tests/specs_wrong): each is caught, by inputs that tell; put right, each is fine."""

import pickle
import re
from pathlib import Path

import pytest
from support.paths import TESTS

from autosched.errors import SpecError
from autosched.machine.host import host_features
from autosched.tensorize.check.verify import CheckReport, check
from autosched.tensorize.spec.load import deferred_text, load_text

FILES = sorted((TESTS / "specs_wrong").glob("*.yaml"))
NOWHERE: frozenset[str] = frozenset()
HERE = host_features()
TELLING = re.compile(r"\w+\[[\d, ]+\]: the (\w+) gives (\S+), the semantics (\S+), for (\w+=.+)")


def _read(path: Path) -> tuple[str, str, str]:
    """The text, what is wrong in it, and what is right."""
    text = path.read_text(encoding="utf-8")
    wrong, right = (re.search(rf"^# {word}: (.+)$", text, re.M).group(1) for word in ("wrong", "right"))
    return text, wrong, right


def _corrected(path: Path) -> str:
    text, wrong, right = _read(path)
    head, body = text.split("isa:", 1)
    assert body.count(wrong) == 1
    return head + "isa:" + body.replace(wrong, right)


def _failures(report: CheckReport) -> dict[str, str]:
    return {p.what: p.detail for p in report.parts if p.status == "failed"}


def test_there_is_a_file_for_each_kind_of_mistake():
    names = {p.stem for p in FILES}
    assert len(names) >= 22
    assert {"exact_dot_for_saturating_pairs", "product_in_f16_before_widening", "wrong_operand_signedness"} <= names
    assert {"swapped_fragment_axes", "transposed_operand", "wrong_k"} <= names


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_second_description_tells(path):
    """On any machine, without the instruction."""
    (made,) = load_text(_read(path)[0], path.name)
    found = _failures(check(made, NOWHERE))
    assert set(found) == {"second description"}
    told = TELLING.match(found["second description"])
    assert told, found
    assert told[1] == "pseudocode"
    assert told[2] != told[3]
    assert all(f"{o.name}=" in told[4] for o in made.inputs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_same_description_put_right_is_accepted(path):
    (made,) = load_text(_corrected(path), path.name)
    report = check(made, HERE)
    assert report.ok, str(report)
    assert any(p.what == "second description" and p.status in ("proved", "passed") for p in report.parts)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_instruction_tells(path):
    """The same mistake without a second description, where this machine has the instruction."""
    text = re.sub(r"    pseudocode: \|\n(?: {6}.*\n)+", "", _read(path)[0])
    (made,) = load_text(text, path.name)
    assert made.pseudocode is None
    if "llvm" not in made.emit or not made.requires <= HERE:
        pytest.skip("this machine lacks the instruction")
    found = _failures(check(made, HERE))
    told = TELLING.match(found["instruction"])
    assert told, found
    assert told[2] != told[3]


GOOD = """\
isa: npu
intrinsics:
  - name: dot
    semantics: |
      def dot(a: s8[2, 4], b: s8[2, 4], c: s32[2]):
          for i, k in grid(2, 4):
              c[i] += s32(a[i, k]) * s32(b[i, k])
    pseudocode: |
      def dot(a: s8[8], b: s8[8], c: s32[2]):
          for n in range(8):
              c[n % 2] += s32(a[n]) * s32(b[n])
    operands: {a: {packed: [k, i]}, b: {packed: [k, i]}}
"""


def test_registers_in_the_order_that_the_operands_say():
    (made,) = load_text(GOOD)
    (part,) = (p for p in check(made, NOWHERE).parts if p.what == "second description")
    assert (part.status, part.detail) == ("proved", "both describe the same 2 elements (structure)")
    (other,) = load_text(GOOD.replace("b: {packed: [k, i]}", "b: {packed: [i, k]}"))
    assert _failures(check(other, NOWHERE))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("a: s8[8], b: s8[8], c", "b: s8[8], a: s8[8], c", 8, "its parameters are not a, b, c"),
        ("def dot(a: s8[8]", "def dot(a: s8[9]", 8, "a is not s8[2, 4] or s8[8]"),
        ("def dot(a: s8[8]", "def dot(a: s16[8]", 8, "a is not s8[2, 4] or s8[8]"),
        ("c[n % 2] +=", "b[n] = s8(0)\n              c[n % 2] +=", 8, "it writes b, c, the semantics c"),
        ("s32(a[n])", "a[n]", 11, ""),
        ("for n in range(8)", "for n in range(8", 10, ""),
        ("c: s32[2]):\n          for n", "c: s32[2], *, m=2):\n          for n", None, ""),
    ],
)
def test_a_second_description_that_is_none(old, new, line, words):
    assert old in GOOD
    text = GOOD.replace(old, new)
    if line is None:
        assert load_text(text)  # sizes with defaults are numbers
        return
    with pytest.raises(SpecError) as caught:
        load_text(text, "npu.yaml")
    assert "pseudocode" in caught.value.message
    assert words in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line >= line


def test_data_dependent_pseudocode_is_compared_by_running():
    text = GOOD.replace(
        "c[n % 2] += s32(a[n]) * s32(b[n])", "if a[n] != s8(0):\n                  c[n % 2] += s32(a[n]) * s32(b[n])"
    )
    (made,) = load_text(text)
    (part,) = (p for p in check(made, NOWHERE).parts if p.what == "second description")
    assert part.status == "passed"
    assert "depends on data" in part.detail


def test_a_text_for_another_isa_is_compiled_for_it():
    (made,) = load_text((FILES[0].parent / "transposed_operand.yaml").read_text(encoding="utf-8"))
    assert "neoverse" in str(check(made, NOWHERE))
    wrong = (
        (FILES[0].parent / "transposed_operand.yaml").read_text(encoding="utf-8").replace("neon.smmla", "neon.smmlb")
    )
    report = check(load_text(wrong)[0], NOWHERE)
    assert "instruction" in _failures(report)


MAPS = sorted((TESTS / "specs_wrong" / "maps").glob("*.yaml"))


@pytest.mark.parametrize("path", MAPS, ids=lambda p: p.stem)
def test_what_a_load_gives_tells(path):
    """A bijection that no load fills, though nothing can be run and there is no second description."""
    text = path.read_text(encoding="utf-8")
    (made,) = load_text(text, path.name)
    said = re.search(r"^# says: (.+)$", text, re.M).group(1)
    report = check(made, NOWHERE)
    assert not report.ok
    assert re.search(said.replace(r" .* ", r"[\s\S]*"), re.sub(r"failed +", "", str(report))), str(report)


def test_packaged_pseudocode_is_read_when_it_is_asked_for():
    (made,) = (entry.build() for entry in deferred_text(GOOD, "packaged.yaml").values())
    assert pickle.loads(pickle.dumps(made)).pseudocode == made.pseudocode
    wrong = GOOD.replace("def dot(a: s8[8]", "def dot(a: s8[9]")
    (made,) = (entry.build() for entry in deferred_text(wrong, "packaged.yaml").values())
    with pytest.raises(SpecError, match=r"a is not s8\[2, 4\] or s8\[8\]"):
        _ = made.pseudocode.program
    with pytest.raises(SpecError, match=r"a is not s8\[2, 4\] or s8\[8\]"):
        load_text(wrong)  # one's own is read at once, so that what is wrong in it is said with its place
