"""The rules of GPU spaces: what z3 proves of shared memory, three readings that agree, wishes that cannot be had."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import z3
from support.cards.gpu_plans import plans

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import For, statements
from autosched.errors import UsageError
from autosched.logic import Int, evaluate, to_z3
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.explain import z3_reading
from autosched.tiling.space.request import request
from autosched.tiling.steps.gpu.operands.shared_layout import SharedLayout
from autosched.tiling.steps.gpu.operands.shared_proofs import ANSWERS, in_short, layouts, prove_shared, valid

BF16 = {"a": "bf16", "b": "bf16", "acc": "f32"}
SPACES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "wgmma": ("matmul_nt", "cuda/wgmma.m64n128k16.bf16.f32", {"m": 1024, "n": 1024, "k": 1024, **BF16}),
    "mma": ("matmul", "cuda/mma.m16n8k16.*", {"m": 512, "n": 512, "k": 512, **BF16}),
    "wmma": ("matmul", "cuda/wmma.m16n16k16.bf16.f32", {"m": 512, "n": 512, "k": 512, **BF16}),
    "dp4a": ("matmul_nt", "cuda/dp4a*", {"m": 256, "n": 256, "k": 256, "a": "s8", "b": "s8", "acc": "s32"}),
}
SEEN: dict[str, Plan] = {}


def plan_of(name: str) -> Plan:
    if name not in SEEN:
        workload, only, sizes = SPACES[name]
        SEEN[name] = plans(workload, only, **sizes)[1][0]
    return SEEN[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wgmma", "mma", "wmma"])
def test_shared_memory_is_proved(name: str) -> None:
    plan = plan_of(name)
    proofs = prove_shared(plan.tensor_parts[0], plan.space)
    assert {p.operand for p in proofs} == {"a", "b"}
    assert len({p.statement for p in proofs}) == 4
    assert {p.holds for p in proofs} == {True}, [p for p in proofs if not p.holds]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SPACES)
def test_the_proofs_of_a_row_are_those_of_its_case(name: str) -> None:
    plan = plan_of(name)
    part = plan.tensor_parts[0]
    row = int(plan.space.sample(1, np.random.default_rng(0))[0])
    own = prove_shared(part, plan.space, row)
    for operand in {p.operand for p in own}:
        (case,) = {p.case for p in own if p.operand == operand}
        assert case in [said for _, said in layouts(part.nest, operand, plan.space, part.names)]
    assert {(s["holds"], s["refuted"], s["unknown"]) for s in in_short(own)} == {(1, 0, 0)}
    assert own
    assert len(in_short(own)) == len(own) == 4 * len({p.operand for p in own})


def test_a_wrong_swizzle_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turning by the row itself leaves rows of 64 bytes in each other's banks: the proof above can fail."""

    def by_row(self: SharedLayout, row: Int, element: Int) -> tuple[Int, ...]:
        chunk = element // self.chunk
        turned = (chunk % self.span + row) % self.span
        return chunk // self.span, row, turned, element % self.chunk

    plan = plan_of("mma")
    wishes = [{"swizzle": n, "stage_a": "shared", "stage_b": "shared", "copy": "cp.async"} for n in ("32 B", "64 B")]
    rows = [request(plan.space, wish).row for wish in wishes]
    assert None not in rows
    monkeypatch.setattr(SharedLayout, "index", by_row)
    refuted = [p for row in rows for p in prove_shared(plan.tensor_parts[0], plan.space, row) if p.holds is False]
    assert {p.statement for p in refuted} == {"few rows meet in one bank"}
    assert all(p.counterexample for p in refuted)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SPACES)
def test_slices_take_the_bytes_of_their_shape(name: str) -> None:
    """What the space counts is what lowering declares: the rule on bytes is about the memory that is used."""
    plan = plan_of(name)
    ids = plan.space.sample(6, np.random.default_rng(1))
    values = plan.space.values(ids)
    for k, row in enumerate(ids):
        kernel = lower(plan, plan.space.schedule(int(row)))
        loops = [s for s in statements(kernel.main.body) if isinstance(s, For) and s.kind == "cluster"]
        blocks = max((evaluate(s.upper, {}) for s in loops), default=1)
        shared = [b for b in kernel.buffers.values() if b.scope == "shared"]
        tile = sum(b.elements * b.dtype.bits // 8 for b in shared if b.name.endswith("_tile"))
        slices = sum(b.elements * b.dtype.bits // 8 for b in shared) - tile
        assert tile == values["out_bytes"][k] * blocks
        assert slices == values["slices_bytes"][k] * blocks


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SPACES)
def test_three_readings_of_each_rule_agree(name: str) -> None:
    space = plan_of(name).space
    rng = np.random.default_rng(0)
    ids = np.concatenate([rng.integers(0, space.size, 6), space.sample(2, rng)])
    env, _ = z3_reading(space)
    formulas = [to_z3(r.holds, env) for r in space.rules]
    for row in ids:
        values = space.values(row).columns
        schedule = space.schedule(int(row)).values
        numbers = [(z3.Int(d), z3.IntVal(v)) for d, v in schedule.items()]
        masks = [bool(np.all(evaluate(r.holds, values))) for r in space.rules]
        read = [z3.is_true(z3.simplify(z3.substitute(f, *numbers))) for f in formulas]
        assert masks == read, [r.name for r, a, b in zip(space.rules, masks, read, strict=True) if a != b]
        said = space.why_not(int(row))
        assert bool(said) == (not all(masks)), said
        assert len(said) >= masks.count(False)


def test_a_wish_that_can_be_had() -> None:
    space = plan_of("wgmma").space
    answer = request(space, {"roles": "producer", "stages": 4, "cluster": "2 along i"})
    assert answer.row is not None
    assert space.legal([answer.row]).all()
    assert space.schedule(answer.row).named["cluster"] == "2 along i"


@pytest.mark.slow
def test_a_wish_that_cannot_be_had() -> None:
    space = plan_of("wgmma").space
    wanted = {"stages": 6, "reg_i": 1, "groups_i": 2, "reg_j": 1, "groups_j": 1, "block_p": 8}
    answer = request(space, wanted)
    assert answer.row is None
    assert answer.why is not None
    assert any("bytes of shared memory in a block > 232,448" in s for s in answer.why.sentences), str(answer)
    assert any("stages = 6 is wanted" in s for s in answer.why.sentences)
    assert answer.nearest
    assert all(space.legal([s.row]).all() for s in answer.nearest)
    first = answer.nearest[0].values
    assert sum(first[k] != v for k, v in wanted.items()) == 1
    with pytest.raises(UsageError, match="stages cannot be 5"):
        request(space, {"stages": 5})


def test_only_the_last_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def solver() -> SimpleNamespace:
        asked.append(1)
        return SimpleNamespace(set=lambda *_: None, add=lambda _: None, check=lambda: z3.unsat)

    def ask(number: int) -> int:
        """How often the solver is asked whether a number is below one so much larger."""
        before, x = len(asked), z3.Int("x")
        assert valid("smaller", "a", "any", x < x + number).holds
        return len(asked) - before

    monkeypatch.setattr(z3, "Solver", solver)
    assert [ask(n) for n in range(1, ANSWERS + 2)] == [1] * (ANSWERS + 1)
    assert [ask(ANSWERS + 1), ask(2), ask(1)] == [0, 0, 1]
