"""What is proved once for many mappings is what each of them would be proved to be by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import autosched
from autosched.ir import parse
from autosched.tensorize import Catalogue, match
from autosched.tensorize.addresses.axes import Assignment, tile_of
from autosched.tensorize.addresses.proved_before import answer_before, remember
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.match_types import rank
from autosched.tensorize.matcher.form_prover import FormProver
from autosched.tensorize.matcher.proofs import Prover
from autosched.tensorize.reduction.update import update_of_intrinsic

CATALOGUE = Catalogue.builtin()


@pytest.mark.parametrize("name", ["x86/vpdpbusd.zmm", "x86/vfmadd.f32.zmm"])
def test_mappings_that_share_a_certificate_have_it_alone_too(name: str) -> None:
    """Padding, guards and the axes that are summed differ between the mappings of a convolution with a border."""
    types = {"a": "u8", "b": "s8"} if "dpbusd" in name else {"a": "f32", "b": "f32"}
    program = autosched.workload("conv2d", n=1, h=9, w=9, ci=6, co=10, kh=3, kw=3, pad=1, **types)
    intrinsic = CATALOGUE[name]
    (found,) = match(program, [intrinsic])
    assert len({id(m.certificate) for m in found.mappings}) < len(found.mappings)
    stage = program.stage(found.stage)
    for mapping in found.mappings[:: max(1, len(found.mappings) // 12)]:
        update = update_of_intrinsic(intrinsic)
        facts = StageFacts(program, stage)
        alone = FormProver(Prover(2000), facts, intrinsic, update, tile_of(update), "reassociated")
        roles = {r.tensor: mapping.operands[r.tensor] for r in update.operands}
        assert alone.mapping(Assignment(mapping.axes, mapping.outer), roles) == mapping


def test_roles_are_left_out_only_where_they_say_nothing_further() -> None:
    program = autosched.workload("matmul", m=8, n=16, k=8, a="f32", b="f32")
    intrinsic = CATALOGUE["x86/vpdpbusd.zmm"]
    update = update_of_intrinsic(intrinsic)
    facts = StageFacts(program, program.stage("C"))
    one = FormProver(Prover(2000), facts, intrinsic, update, tile_of(update), "reassociated")
    roles = dict(zip(("a", "b"), facts.update.operands, strict=True))
    assert not one.adds_nothing(roles, None)
    assert not one.adds_nothing(roles, rank("DEPENDS", 1))
    assert not one.adds_nothing(roles, rank("DTYPE", 3)), "three wrong types are worse than two"
    assert one.adds_nothing(roles, rank("DTYPE", 2))
    assert one.adds_nothing(roles, rank("BODY_DIFFERS", 1))
    fitting = autosched.workload("matmul", m=8, n=16, k=8, a="u8", b="s8")
    facts = StageFacts(fitting, fitting.stage("C"))
    one = FormProver(Prover(2000), facts, intrinsic, update, tile_of(update), "reassociated")
    roles = dict(zip(("a", "b"), facts.update.operands, strict=True))
    assert not one.adds_nothing(roles, rank("NUMERICS", 1)), "these roles fit"


def test_a_proof_is_not_that_of_a_stage_with_other_bounds_or_guards() -> None:
    """The same subscripts, in stages whose other parts decide whether two points write one element."""
    text = "def f(A: f32[8], C: f32[64]):\n    for i, j in grid(8, {}):\n        {}C[i * 4 + j] = A[i]\n"
    writes = []
    for size, guard in ((4, ""), (6, ""), (6, "if j < 4:\n            "), (6, "if j < 5:\n            ")):
        program = parse(text.format(size, guard))
        writes.append(StageFacts(program, program.stage("C")).distinct_writes.holds)
    assert writes == [True, False, True, False]


def test_questions_that_were_proved_before_are_written_out_all_the_same(tmp_path: Path) -> None:
    program = autosched.workload("matmul", m=8, n=16, k=8, a="u8", b="s8")
    counts = []
    for n in range(2):
        match(program, [CATALOGUE["x86/vpdpbusd.zmm"]], dump_smt=tmp_path / str(n))
        counts.append(len(list((tmp_path / str(n)).glob("*.smt2"))))
    assert counts[0] == counts[1] > 0


def test_old_answers_make_room_for_new_ones() -> None:
    for n in range(1 << 15):
        remember(("made up", n), True)
    assert answer_before(("made up", 0)) is None
    assert answer_before(("made up", (1 << 15) - 1))
