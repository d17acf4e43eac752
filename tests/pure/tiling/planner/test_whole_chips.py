"""Chips without a host: every statement of a plan is on an instruction of theirs, or the plan is refused with the place
of what nothing does, what that is, and what would mend it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.chips import CHIPS, FOLDER, SMALL, chip, instructions, measured, planned, program

from autosched.errors import NoScheduleError, SpecError
from autosched.ir import parse, run
from autosched.ir.value import Literal, Scalar
from autosched.machine.catalogue import target_yaml
from autosched.machine.spec import target_from_yaml
from autosched.tiling.planner.families import family_of
from autosched.tiling.planner.without_host import missing
from autosched.tiling.plans.plan import Plan, ScalarPart, TensorPart


@cache
def first(name: str, of: str) -> Plan:
    return planned(name, of)[0]


def used(plan: Plan) -> set[str]:
    """The instructions that a plan computes with."""
    own = {t.nest.intrinsic.name for t in plan.tensor_parts}
    return own | {f.proved.intrinsic.name for t in plan.tensor_parts for f in t.epilogue if f.proved is not None}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize("of", SMALL)
def test_every_statement_is_on_an_instruction_of_the_chip(name: str, of: str) -> None:
    plan = first(name, of)
    isa = chip(name).isa
    for part in plan.parts:
        if isinstance(part, ScalarPart):  # numbers that commands carry
            assert isinstance(part.stage.assign.value, Literal | Scalar)
        else:
            assert isinstance(part, TensorPart)
            assert part.nest.intrinsic.isa == isa
            assert all(f.proved is not None and f.proved.intrinsic.isa == isa for f in part.epilogue)
    assert not list(missing(plan))


CASES = [("systolic", "layer", ""), ("systolic", "attention", ""), ("vector", "softmax", "f32|exp")]
"""Chips, programs, and the instructions that are taken away."""


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("name", "of", "instruction"),
    [(n, of, i.name) for n, of, some in CASES for i in instructions(n) if re.search(some, i.name)],
    ids=lambda value: value.replace("/", " "),
)
def test_without_an_instruction_the_plan_is_another_or_none(name: str, of: str, instruction: str) -> None:
    before = first(name, of)
    after: Plan | None = None
    refused: NoScheduleError | None = None
    try:
        after = planned(name, of, without=f"^{re.escape(instruction)}$")[0]
    except NoScheduleError as error:
        refused = error
    if refused is not None:
        assert "no unit of it does all of the program" in refused.message
        assert "programs.py:" in refused.message
        assert "describe" in str(refused.hint)
    elif after is not None:
        assert instruction not in used(after)
        assert after.name != before.name or instruction not in used(before)


@pytest.mark.parametrize(
    ("of", "without", "said", "mend"),
    [
        ("softmax", r"exp\.f32", r"programs\.py:33:9: E: no instruction computes X\[i, j\] - M\[i\]", "from f32"),
        ("softmax", r"rowmax", r"programs\.py:31:13: M: no instruction adds up X\[i, j\] by max=", "from f32"),
        ("layer", r"mvin\.s8", r":18:13: C: nothing copies s8 .* to inputs, where .*/matmul takes a", "{from: m"),
        ("layer", r"mvin\.f32", r":20:9: D: nothing copies f32 .* to inputs, for scale\[j\]", "that reads f32"),
        ("layer", r"mvout\.s8", r"programs\.py:20:9: D: nothing copies s8 from accumulators", "{from: accumulators"),
        ("layer", r"matmul", r"programs\.py:18:13: C: no instruction computes s32\(A\[i, p\]\)", "writes s32 from s8"),
        ("layer", r"config", r"programs\.py:18:13: C: systolic/matmul computes with dataflow", "`sets: [dataflow]`"),
    ],
)
def test_what_a_chip_lacks_is_said_with_its_place(of: str, without: str, said: str, mend: str) -> None:
    with pytest.raises(NoScheduleError, match=said) as caught:
        planned("systolic", of, without=without)
    assert mend in str(caught.value.hint)


def test_a_part_that_no_instruction_computes_is_named() -> None:
    said = r"E: no instruction computes exp\(f32\) in exp\(X\[i, j\] - M\[i\]\)"
    with pytest.raises(NoScheduleError, match=said) as caught:
        planned("vector", "softmax", without="vexp")
    assert "writes f32 from f32" in str(caught.value.hint)


def test_parts_are_told_in_the_words_of_the_file() -> None:
    """Three steps in front of the exponential have names of their own in the program that is laid out."""
    with pytest.raises(NoScheduleError) as caught:
        planned("vector", "attention", without="vexp")
    (line,) = caught.value.message.splitlines()[1:]
    assert line == "  programs.py:80:9: E: no instruction computes exp(f32) in exp(f32(S[i, j] - M[i]) * a[0])"


MASKED = """
isa: vla
intrinsics:
  - name: msum
    semantics: |
      def msum(a: f32[16], m: b1[16], c: f32[1]):
          for i in range(16):
              if m[i] != 0:
                  c[0] += a[i]
    timing: {latency: 4, interval: 1}
"""


def test_a_mask_that_nothing_makes_is_the_cause() -> None:
    """Not the masked sum, which an instruction computes."""
    text = "def data(X: f32[16, 16], S: f32[16]):\n    for i in range(16):\n        S[i] = 0\n"
    text += "        for j in range(16):\n            if X[i, j] > 0.5:\n                S[i] += X[i, j]\n"
    with pytest.raises(NoScheduleError) as caught:
        planned("vector", parse(text, filename="m.py"), more=MASKED)
    first, *_ = caught.value.message.splitlines()[1:]
    assert first == "  m.py:6:17: S: no instruction computes X[i, j] > 0.5, which vla/msum takes as m"
    assert "S: describe an instruction of kind compute that writes b1 from f32" in str(caught.value.hint)


def test_a_masked_choice_is_told_the_instruction_that_computes_it() -> None:
    """Not one that writes b1: that would copy the mask, which the program has."""
    text = "def data(A: f32[20, 75], B: f32[75], M: b1[20, 75], C: f32[20, 75]):\n    for i, j in grid(20, 75):\n"
    text += "        C[i, j] = A[i, j] + B[j] if M[i, j] != 0 else A[i, j]\n"
    with pytest.raises(NoScheduleError) as caught:
        planned("vector", parse(text, filename="m.py"))
    hint = "chooses by a mask: `c[i] = a[i] if m[i] != 0 else b[i]`, with m: b1 and f32 a, b, c"
    assert hint in str(caught.value.hint)


def test_what_many_stages_lack_is_told_once() -> None:
    with pytest.raises(NoScheduleError) as caught:
        planned("vector", "softmax", without="^vla/(load|store)")
    taken, left = caught.value.message.splitlines()[1:]
    assert "M: nothing copies f32 from memory to inputs, where vla/vredmax.f32 takes a; nor for E, S, Y" in taken
    assert "M: nothing copies f32 from accumulators to memory; nor for E, S, Y" in left
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()[-2:]] == ["help", "      M, E, S, Y"]


def test_with_a_host_the_same_chip_has_plans() -> None:
    plans = planned("systolic", "softmax", without=r"exp\.f32", target=chip("systolic", host=True))
    assert {"M", "S", "Y"} <= {t.nest.stage.name for p in plans for t in p.tensor_parts}
    assert "E" not in {t.nest.stage.name for p in plans for t in p.tensor_parts}


def test_sums_are_finished_by_an_instruction() -> None:
    plan = first("systolic", "layer")
    assert plan.name.endswith("+D: systolic/out.relu.s8")
    assert {n: i.name for n, i in plan.units.finishing.items()} == {"D": "systolic/out.relu.s8"}
    assert any(m.intrinsic.name == "systolic/out.relu.s8" for m in plan.mappings)


def test_steps_are_bit_for_bit_the_program() -> None:
    plan = first("vector", "attention")
    (steps,) = (r for r in plan.rewrites if r.name == "steps")
    assert steps.numerics == "bitwise"
    assert family_of(plan) == "adapted"  # not as written
    assert any("E_s_2" in line for line in steps.because)
    text = str(plan.program)
    assert "exp(E_s_3[" in text
    assert {"vla/vexp", "vla/mma.s8"} <= used(plan)


def test_a_chip_says_that_it_has_no_host() -> None:
    text = target_yaml(chip("vector"))
    assert "host: none" in text
    assert not target_from_yaml(text, "again.yaml").host
    assert target_from_yaml(text.replace("  host: none\n", ""), "hosted.yaml").host


@pytest.mark.parametrize(
    ("change", "said", "hint"),
    [
        (("host: none", "host: some"), "host", "none"),
        (("holds: [inputs]", "line: 64 B"), "", ""),
        (("  host: none\n", "  host: none\n  rates: {scalar: 1 issue/cycle}\n"), "scalar is a host's rate", "leave"),
    ],
)
def test_a_chip_without_a_host_is_checked(change: tuple[str, str], said: str, hint: str) -> None:
    text = (FOLDER / "vector.yaml").read_text()
    assert change[0] in text
    changed = text.replace(*change)
    if not said:
        changed = re.sub(r", holds: \[\w+\]", "", changed)
        said, hint = "needs memories that the program fills", "holds: \\[inputs\\]"
    with pytest.raises(SpecError, match=said) as caught:
        target_from_yaml(changed, "chip.yaml")
    assert re.search(hint, f"{caught.value} {caught.value.hint}")
    assert "chip.yaml:" in str(caught.value.location)


def test_programs_do_what_they_say() -> None:
    """The four as numpy computes them."""
    rng = np.random.default_rng(0)
    data = {
        "A": rng.integers(-128, 128, (9, 19)).astype(np.int8), "B": rng.integers(-128, 128, (19, 21)).astype(np.int8),
        "bias": rng.integers(-9999, 9999, 21).astype(np.int32), "scale": (rng.random(21) / 500).astype(np.float32),
    }  # fmt: skip
    got = run(program("layer"), data)["D"]
    sums = np.maximum(data["A"].astype(np.int32) @ data["B"].astype(np.int32) + data["bias"], 0).astype(np.float32)
    assert np.array_equal(got, np.clip(np.rint(sums * data["scale"]), -128, 127).astype(np.int8))
    x = rng.standard_normal((9, 21)).astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(run(program("softmax"), {"X": x})["Y"], e / e.sum(1, keepdims=True), rtol=1e-5)


def test_a_stage_that_loops_hold_together_has_no_unit() -> None:
    text = "def f(X: f32[8], Y: f32[8]):\n    for i in range(1, 8):\n        Y[i] = Y[i - 1] * X[i]\n"
    with pytest.raises(NoScheduleError, match="its iterations depend on each other"):
        planned("vector", parse(text, filename="f.py"))


LIVE = """
def live(A: s8[16, 16], B: s8[16, 16], C: s32[16, 16]):
    for i, j, p in grid(16, 16, 16):
        C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""
FILLED = "def filled(C: f32[16, 16]):\n    for i, j in grid(16, 16):\n        C[i, j] = 3.0\n"
COPY = """
isa: systolic
intrinsics:
  - name: mvin.bias
    kind: copy
    moves: {from: memory, to: accumulators}
    timing: {interval: 64}
    semantics: |
      def mvin(x: s32[16, 16], y: s32[16, 16]):
          for i, j in grid(16, 16):
              y[i, j] = VALUE
"""


def test_sums_that_go_on_need_a_way_to_the_accumulators() -> None:
    """The planner takes a `copy` that moves each element unchanged, and no other: no proof covers what one computes."""
    said = "nothing copies s32 from memory to accumulators, and the sums of C go on from what is there"
    for more in ("", *(COPY.replace("VALUE", v) for v in ("-x[i, j]", "x[j, i]", "x[i, 0]"))):
        with pytest.raises(NoScheduleError, match=said):
            planned("systolic", parse(LIVE), more=more)
    assert planned("systolic", parse(LIVE), more=COPY.replace("VALUE", "x[i, j]"))


def test_a_result_of_numbers_is_work_too() -> None:
    with pytest.raises(NoScheduleError, match=r"no instruction computes f32\(3.0\)"):
        planned("systolic", parse(FILLED))


FILL = """
isa: vla
intrinsics:
  - name: vfill
    semantics: |
      def vector(a: f32[1], c: f32[8]):
          for i in range(8):
              c[i] = a[0]
    timing: {latency: 4, interval: 1}
  - name: vmov
    semantics: |
      def vector(a: f32[8], c: f32[8]):
          for i in range(8):
              c[i] = a[i]
    timing: {latency: 4, interval: 1}
"""


@pytest.mark.parametrize(
    ("text", "by"),
    [(FILLED, "vla/vfill"), (FILLED.replace("C: ", "A: f32[16, 16], C: ").replace("3.0", "A[j, i]"), "vla/vmov")],
    ids=["numbers", "copies"],
)
def test_a_fill_and_a_copy_are_on_instructions(text: str, by: str) -> None:
    """A chip with a host leaves them to it."""
    with pytest.raises(NoScheduleError) as caught:
        planned("vector", parse(text))
    assert ("that fills: `c[i] = a[0]`, with a: f32[1]" in str(caught.value.hint)) == (by == "vla/vfill")
    plan = planned("vector", parse(text), more=FILL)[0]
    assert used(plan) == {by}
    assert all(m.ok and m.verified for _, m in measured(plan, 3))
    assert not used(planned("vector", parse(text), more=FILL, target=chip("vector", host=True))[0])


@pytest.mark.parametrize("place", ["inputs", "accumulators"])
def test_a_memory_holds_what_instructions_take(place: str) -> None:
    target = chip("systolic")
    memories = tuple(replace(m, holds=tuple(h for h in m.holds if h != place)) for m in target.memories)
    with pytest.raises(NoScheduleError, match=f"no memory of .* holds {place}") as caught:
        planned("systolic", "layer", target=replace(target, memories=memories))
    assert f"holds: [{place}]" in str(caught.value.hint)


def test_a_chip_without_any_instruction_says_so() -> None:
    """As where --intrinsics is forgotten, or a feature is spelt in two ways."""
    with pytest.raises(NoScheduleError, match="no instruction of isa systolic that it has is known") as caught:
        planned("systolic", "softmax", without=".")
    assert "--intrinsics" in str(caught.value.hint)
