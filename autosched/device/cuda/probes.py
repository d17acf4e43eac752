"""Kernels that measure a GPU: bytes streamed from a memory, and issues of one instruction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autosched.codegen.cuda.emission import device_function
from autosched.codegen.cuda.fragments.lane_registers import (
    ALONG,
    identifier,
    issue_name,
    lanes_of,
    register_type,
    registers_of,
)
from autosched.codegen.cuda.headers import needed
from autosched.codegen.cuda.helpers import helper_texts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.emit import names_keep

ACCUMULATORS = 4
"""Independent ones of each worker: with `WARPS` of them they hide the latency of a product."""
WARPS = 8
TURNS, UNROLLED = 2048, 16
GROUP_REGISTERS = 128
"""Of the accumulators of one group of asynchronous products."""

OPAQUE_MAJORS = "row", "col"
"""How opaque operands lie: lines along the depth."""

STREAM = """
struct alignas(16) Words { unsigned a, b, c, d; };
extern "C" __global__ void __launch_bounds__(512) read(const Words *from, unsigned *to, unsigned count, unsigned turns)
{
    unsigned sum = 0;
    for (unsigned t = 0; t < turns; ++t)
        for (unsigned i = blockIdx.x * 512 + threadIdx.x; i < count; i += gridDim.x * 512) {
            Words w;
            asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(w.a), "=r"(w.b), "=r"(w.c), "=r"(w.d) : "l"(from + i));
            sum += w.a ^ w.b ^ w.c ^ w.d;
        }
    if (sum == 0x12345678) *to = sum;
}
extern "C" __global__ void __launch_bounds__(512) copied(const Words *from, Words *to, unsigned count) {
    for (unsigned i = blockIdx.x * 512 + threadIdx.x; i < count; i += gridDim.x * 512) to[i] = from[i];
}
"""
"""`read`: past the first cache; `copied`: bytes read and written."""


@dataclass(frozen=True)
class Probe:
    """A text with one kernel `probe(to)`: `issues` of each worker in one launch, `workers` in a block of `threads`."""

    text: str
    headers: Mapping[str, str]
    issues: int
    workers: int
    threads: int


def issue_probe(intrinsic: Intrinsic) -> Probe | str:
    """A kernel that issues an intrinsic again and again, or why there is none."""
    if intrinsic.kind != "compute" or "cuda" not in intrinsic.emit:
        return "it has no CUDA text"
    lanes = lanes_of(intrinsic)
    described = intrinsic.scope == "warpgroup"
    opaque = intrinsic.accumulator.opaque is not None
    majors = (ALONG, ALONG) if described else OPAQUE_MAJORS if opaque else ()
    used: set[str] = set()
    try:
        function = device_function(intrinsic, used.add, majors)
    except (KeyError, ValueError) as error:
        return f"it cannot be printed alone ({error})"
    threads = max(lanes, WARPS * 32 // max(1, lanes // 32) if lanes < 128 else 2 * lanes)
    accumulator = intrinsic.accumulator
    held = registers_of(accumulator, lanes)
    kind = register_type(accumulator, held)
    count = max(1, GROUP_REGISTERS // held.count) if described else ACCUMULATORS
    lines = [f"    {kind} sums[{count}][{held.count}] = {{}};"]
    arguments = []
    for operand in intrinsic.inputs:
        if described:
            arguments.append("descriptor<128>(tile, 16, 1024)")
            continue
        r = registers_of(operand, lanes)
        own = register_type(operand, r)
        lines.append(f"    {own} {operand.name}_in[{r.count}];")
        lines.append(f"    for (int i = 0; i < {r.count}; ++i) {operand.name}_in[i] = ({own})(threadIdx.x + i);")
        arguments.append(f"{operand.name}_in")
    if described:
        lines.insert(0, "    __shared__ __align__(1024) unsigned char tile[40960];")
    name = issue_name(intrinsic, majors) if majors else identifier(intrinsic)
    call = f"{name}(sums[s], {', '.join(arguments)}{', 1' if names_keep(intrinsic.emit, intrinsic.operands) else ''});"
    begin, end = ("        group_begin();", "        group_end();\n        group_wait<0>();") if described else ("", "")
    body = "\n".join(
        [
            *lines,
            f"    #pragma unroll {1 if described else UNROLLED}",
            f"    for (int turn = 0; turn < {TURNS}; ++turn) {{",
            begin,
            "        #pragma unroll",
            f"        for (int s = 0; s < {count}; ++s) {call}",
            end,
            "    }",
            f"    for (int s = 0; s < {count}; ++s)",
            f"        for (int i = 0; i < {held.count}; ++i) if (sums[s][i] == ({kind})123) *to = 1;",
        ]
    )
    names = ["autosched/types.cuh", "autosched/fragment.cuh", *(["autosched/wgmma.cuh"] if described else [])]
    headers = needed(names)
    text = "\n".join(
        [
            *(f'#include "{n}"' for n in names),
            "using namespace autosched;",
            *helper_texts(used),
            function,
            f'extern "C" __global__ void __launch_bounds__({threads}) probe(unsigned *to) {{',
            body,
            "}",
        ]
    )
    return Probe(text, headers, TURNS * count, threads // lanes, threads)
