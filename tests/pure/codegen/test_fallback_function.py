"""What stands by for a function, printed once for the kernels that share it, is called as it is defined."""

from __future__ import annotations

import re
from dataclasses import replace

from support.programs.guarded import guarded, programs

from autosched.codegen.llvm.module import print_parts
from autosched.codegen.lower import lower


def test_kernels_that_share_what_stands_by_call_it_in_its_order_of_buffers() -> None:
    plan = guarded(programs()["data"])[0]
    kernel = lower(plan, plan.space.schedule(int(plan.space.enumerate().ids[0])))
    turned = replace(kernel, main=replace(kernel.main, buffers=tuple(reversed(kernel.main.buffers))))
    orders = set()
    for one in (kernel, turned):
        *others, fallback = print_parts(one)
        (called,) = re.findall(r"call void @\S*fallback\S*\((.*)\)", others[0])
        (defined,) = re.findall(r"define void @\S*fallback\S*\((.*)\) #0", fallback)
        assert called == defined.replace(" noalias", "")
        orders.add(called)
    assert len(orders) == 2
