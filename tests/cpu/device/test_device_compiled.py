"""What prepares constants is a module of its own: schedules that pack alike share it, and it is compiled once."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiled.native import compiled as machine_code

import autosched
from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm, print_parts
from autosched.codegen.lower import lower
from autosched.device.cpu import compiled
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of


@pytest.mark.slow
def test_schedules_that_pack_alike_share_a_module() -> None:
    program = autosched.workload("matmul", m=24, n=48, k=40)
    plan = plans_of(TuneRequest(program, autosched.target("native")))[1][0]
    rows = plan.space.sample(40, np.random.default_rng(0))
    kernels = [lower(plan, plan.space.schedule(int(row))) for row in rows]
    packing = [k for k in kernels if k.prepare]
    made: list[str] = []

    def compile_once(text: str, *args: object) -> bytes:
        made.append(text)
        return compile_object(text)

    lately = compiled.Compiled(compile_once)
    a, b = (np.random.default_rng(1).standard_normal(s).astype(np.float32) for s in ((24, 40), (40, 48)))
    for kernel in packing[:8]:
        texts = print_parts(kernel)
        assert len(texts) == 2
        assert all(f"@{f.name}(" not in texts[0] for f in kernel.prepare)
        objects = lately.objects(texts, None, None)
        got = CompiledKernel(kernel, load(objects))(a, b)
        assert np.array_equal(got, machine_code(kernel)(a, b))
    distinct = {text for kernel in packing[:8] for text in print_parts(kernel)}
    assert len(made) == len(distinct) < 16
    assert [print_parts(k) for k in kernels if not k.prepare] == [(print_llvm(k),) for k in kernels if not k.prepare]


def test_what_was_compiled_long_ago_is_forgotten() -> None:
    lately = compiled.Compiled(lambda text, *args: text.encode())
    for number in range(3 * compiled.KEPT):
        assert lately.objects(("packing", str(number)), None, None) == (b"packing", str(number).encode())
    assert len(lately._known) == compiled.KEPT
    assert ("packing", None, None) in lately._known
