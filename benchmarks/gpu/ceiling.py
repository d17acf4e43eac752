"""An instruction's own ceiling, to stand beside the kernels that use it: a loop of its calls on registers, and, where
fragments are loaded by the instruction's own texts (WMMA), a loop of calls with the loads of a warp's tile from shared
memory. Both take part in a case's rounds, sample by sample, so that they have the clock that the kernels have."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from autosched.codegen.cuda.emission import device_function, whole_function
from autosched.codegen.cuda.fragments.lane_registers import (
    issue_name,
    lanes_of,
    register_type,
    registers_of,
    whole_name,
)
from autosched.codegen.cuda.headers import needed
from autosched.device.cuda.launch_job import CudaJob, KernelMemory, LaunchCall, Pointer
from autosched.device.cuda.probes import OPAQUE_MAJORS, Probe, issue_probe
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.plans.plan import Plan
from benchmarks.gpu.bundle import Entry, Loop

CALLS, LOADED = "own calls", "own calls and loads"
SIDE, WARPS, UNITS, STAGES = 4, (4, 2), 4, 3
"""Of the loop with loads: fragments along each side of a warp's tile, warps along both, depth units in a slice, slices
in shared memory: what the best rows of WMMA have."""
PAD_BYTES, SLICES = 16, 256


def loops_of(plan: Plan, target: Target, headers: dict[str, str]) -> tuple[Loop, ...]:
    """The loops of the instruction that the plan uses, each filling the GPU; their headers are added to `headers`."""
    intrinsic = plan.tensor_parts[0].nest.intrinsic
    found: list[Loop] = []
    for name, probe, shared_bytes in _probes(intrinsic):
        headers |= dict(probe.headers)
        each = 1 if shared_bytes else max(1, target.limits["warps_per_core"] * 32 // probe.threads // 2)
        call = LaunchCall("probe", (target.cores * each, 1, 1), (probe.threads, 1, 1), shared_bytes, (Pointer("to"),))
        job = CudaJob(b"", (call,), held={"to": KernelMemory(256)})
        number = -2 - len(found)  # -1 is the plain kernel's
        entry = Entry(name, 0, number, probe.text, tuple(probe.headers), target.compiler["arch"], job)
        products = probe.issues * probe.workers * each * target.cores * prod(a.extent for a in intrinsic.axes)
        found.append(Loop(entry, 2 * products))
    return tuple(found)


def _probes(intrinsic: Intrinsic) -> Iterator[tuple[str, Probe, int]]:
    """Name, probe and bytes of shared memory of each loop."""
    alone = issue_probe(intrinsic)
    if isinstance(alone, Probe):
        yield CALLS, alone, 0
    if intrinsic.accumulator.opaque is not None:
        yield LOADED, *loaded_probe(intrinsic)


def loaded_probe(intrinsic: Intrinsic) -> tuple[Probe, int]:
    """Calls on a warp's tile of fragments, loaded a depth unit ahead of them from rows along the depth, a chunk longer
    than a slice (no bank conflicts); and the bytes of shared memory of a block."""
    lanes = lanes_of(intrinsic)
    accumulator, operands = intrinsic.accumulator, intrinsic.inputs
    spatial = [next(a.extent for a in intrinsic.spatial if a.name in intrinsic.operand_axes[o.name]) for o in operands]
    depth = prod(a.extent for a in intrinsic.axes if a not in intrinsic.spatial)
    bits = operands[0].dtype.bits
    row = UNITS * depth + PAD_BYTES * 8 // bits  # elements
    rows = [SIDE * warps * extent for warps, extent in zip(WARPS, spatial, strict=True)]
    threads, slice_bytes = lanes * WARPS[0] * WARPS[1], sum(rows) * row * bits // 8
    held = registers_of(accumulator, lanes)
    sums = f"{register_type(accumulator, held)} sums[{SIDE}][{SIDE}][{held.count}]"
    used: set[str] = set()
    functions = [device_function(intrinsic, used.add, OPAQUE_MAJORS)]
    declared, loads = [], []
    starts = [f"warp % {WARPS[0]} * {SIDE * spatial[0]}", f"{rows[0]} + warp / {WARPS[0]} * {SIDE * spatial[1]}"]
    for operand, major, extent, start in zip(operands, OPAQUE_MAJORS, spatial, starts, strict=True):
        functions.append(whole_function(intrinsic, operand.name, "load", major, True))
        r = registers_of(operand, lanes)
        declared.append(f"    {register_type(operand, r)} {operand.name}[2][{SIDE}][{r.count}];")
        place = f"(({start} + i * {extent}) * {row} + u % {UNITS} * {depth}) * {bits} / 8"
        name = whole_name(intrinsic, operand.name, "load", major)
        loads.append(f"            {name}({operand.name}[u % 2][i], slice + {place}, {row});")
    body = f"""
extern "C" __global__ void __launch_bounds__({threads}) probe(unsigned *to) {{
    extern __shared__ __align__(128) unsigned char memory[];
    int warp = threadIdx.x / {lanes};
    unsigned seed = threadIdx.x * 2654435761u;
    for (int i = threadIdx.x; i < {STAGES * slice_bytes // 2}; i += {threads}) {{
        seed = seed * 1664525u + 1013904223u;  // halves between 1 and 2, or any bytes
        reinterpret_cast<unsigned short *>(memory)[i] = 0x3c00u | (seed >> 16 & 0x83ffu);
    }}
    __syncthreads();
    {sums} = {{}};
{chr(10).join(declared)}
    auto load = [&](const unsigned char *slice, int u) {{
        #pragma unroll
        for (int i = 0; i < {SIDE}; ++i) {{
{chr(10).join(loads)}
        }}
    }};
    load(memory, 0);
    for (int turn = 0; turn < {SLICES}; ++turn) {{
        const unsigned char *slice = memory + turn % {STAGES} * {slice_bytes};
        #pragma unroll
        for (int u = 0; u < {UNITS}; ++u) {{
            load(slice, u + 1);
            #pragma unroll
            for (int i = 0; i < {SIDE}; ++i)
                #pragma unroll
                for (int j = 0; j < {SIDE}; ++j)
                    {issue_name(intrinsic, OPAQUE_MAJORS)}(sums[i][j], {", ".join(
                        f"{o.name}[u % 2][{v}]" for o, v in zip(operands, "ij", strict=True))});
        }}
    }}
    #pragma unroll
    for (int i = 0; i < {SIDE * SIDE}; ++i)
        #pragma unroll
        for (int k = 0; k < {held.count}; ++k)
            if (sums[i / {SIDE}][i % {SIDE}][k] == 123) *to = 1;
}}"""
    names = ("autosched/types.cuh", "autosched/address.cuh", "autosched/fragment.cuh")
    text = "\n".join([*(f'#include "{n}"' for n in names), "using namespace autosched;", *functions, body])
    issues = SLICES * UNITS * SIDE * SIDE
    return Probe(text, needed(names), issues, WARPS[0] * WARPS[1], threads), STAGES * slice_bytes
