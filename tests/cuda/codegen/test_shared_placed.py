"""Where a kernel's shared memory lies: what is proved of printed kernels, and mistakes that the proofs find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.cards.gpu_plans import H200, covering, plans

from autosched.codegen.cuda import print_cuda
from autosched.codegen.cuda.shared_memory.layout import SharedMemory
from autosched.codegen.cuda.shared_memory.proofs import prove_placed
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.tiling.space.request import request
from autosched.tiling.steps.gpu.operands.shared_proofs import LayoutProof, proof_json, proof_lines

BF16 = {"a": "bf16", "b": "bf16", "acc": "f32"}
F16 = {"a": "f16", "b": "f16", "acc": "f32"}
LIMIT = H200.limits["shared_bytes"]
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "wgmma": ("matmul_nt", "cuda/wgmma.m64n16k16.bf16.f32", {"m": 256, "n": 64, "k": 256, "out": "bf16", **BF16}),
    "mma": ("matmul", "cuda/mma.m16n8k16.*", {"m": 64, "n": 64, "k": 64, **BF16}),
    "wmma": ("matmul", "cuda/wmma.m16n16k16.f16.f32", {"m": 40, "n": 33, "k": 40, **F16}),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", CASES)
def test_what_is_printed_is_proved(case: str) -> None:
    name, only, sizes = CASES[case]
    _, (plan, *_) = plans(name, only, **sizes)
    seen = set()
    for row in covering(plan)[:8]:
        kernel = lower(plan, plan.space.schedule(row))
        counted = int(plan.space.values(row)["shared_bytes"][0])
        for memory in print_cuda(kernel, H200).memory.values():
            proofs = prove_placed(kernel, memory, LIMIT)
            assert all(p.holds for p in proofs), [p for p in proofs if not p.holds]
            seen |= {p.statement for p in proofs}
            assert memory.bytes <= counted or case == "wmma"  # whose fragments are stored by way of a piece
    assert len(seen) >= 3


def piped() -> tuple[Kernel, SharedMemory]:
    _, (plan, *_) = plans("matmul_nt", CASES["wgmma"][1], **CASES["wgmma"][2])
    wish = {"copy": "TMA", "stages": 3, "roles": "producer", "epilogue": "TMA", "persistent": 0, "split": 1}
    answer = request(plan.space, wish)
    assert answer.row is not None, str(answer)
    kernel = lower(plan, plan.space.schedule(answer.row))
    return kernel, next(m for m in print_cuda(kernel, H200).memory.values() if m.barriers)


def refuted(proofs: list[LayoutProof]) -> set[str]:
    assert all(p.counterexample or p.case for p in proofs if not p.holds)
    return {p.statement for p in proofs if p.holds is False}


def test_mistakes_are_found() -> None:
    kernel, memory = piped()
    assert refuted(prove_placed(kernel, memory, LIMIT)) == set()
    first, second = list(memory.buffers)[:2]
    onto = replace(memory, offsets=memory.offsets | {second: memory.offsets[first]})
    assert "slices, tiles and barriers do not overlap" in refuted(prove_placed(kernel, onto, LIMIT))
    odd = replace(memory, offsets=memory.offsets | {"full": memory.offsets["full"] + 4})
    assert "each begins at a multiple of its alignment" in refuted(prove_placed(kernel, odd, LIMIT))
    assert refuted(prove_placed(kernel, memory, memory.bytes - 1)) == {"all of it is asked for and there is as much"}
    fewer = replace(memory, barriers=memory.barriers | {"full": 2})
    found = [p for p in prove_placed(kernel, fewer, LIMIT) if p.holds is False]
    assert {p.statement for p in found} == {"a stage is one of its barrier's"}
    lines = proof_lines(found)
    assert all("REFUTED by [" in line for line in lines)
    assert proof_json(found[0])["holds"] is False


def test_proofs_read_as_lines() -> None:
    same = [LayoutProof("s", "a", f"case {n}", True) for n in range(3)]
    assert proof_lines([*same, LayoutProof("s", "b", "one", True), LayoutProof("t", "b", "two", None)]) == [
        "  a: s (3 cases)",
        "  b: s (one)",
        "  b: t: not known (two)",
    ]
