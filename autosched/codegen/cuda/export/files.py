"""`export_cuda`: a kernel as a CUDA file and a header that a person would ship: kernels, and launchers in plain C.

`NAME` takes pointers to the GPU's memory and a stream; `NAME_on_host` takes arrays of the host, and copies them there
and back. Both answer a `cudaError_t`. Nothing but the CUDA runtime is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from autosched.codegen.c_like.ctypes import storage_type
from autosched.codegen.c_like.names import Names
from autosched.codegen.c_like.source import CSource, about, function_text, right_where
from autosched.codegen.cuda.export.reserved_names import TAKEN, declared
from autosched.codegen.cuda.launch import (
    ALIGNMENT,
    BufferArgument,
    Launch,
    MapArgument,
    ScalarArgument,
    TensorMapEncoding,
)
from autosched.codegen.cuda.printer import CudaSource, print_cuda
from autosched.codegen.cuda.types import map_type
from autosched.codegen.tree.kernel import Buffer, Kernel
from autosched.escape import comment_lines, in_comment
from autosched.machine.target import Target

_INCLUDE = re.compile(r'^#include "(autosched/[\w.]+)"\n', re.MULTILINE)


@dataclass(frozen=True)
class CudaFiles:
    """`header` is `NAME.h` and `source` `NAME.cu`. `on_host` is the function of host arrays as the C self-test calls
    functions."""

    header: str
    source: str
    name: str
    printed: CudaSource
    flags: str
    on_host: CSource


def export_cuda(kernel: Kernel, target: Target) -> CudaFiles:
    """The kernel under its own name. SpecError for an intrinsic that has no CUDA text; UsageError for what no launch
    can hold."""
    printed = print_cuda(replace(kernel, name=f"{kernel.name}_kernel"), target)
    return _Exporter(kernel, printed).files()


def inlined(source: CudaSource) -> str:
    """The text with its headers in place of their includes, each once: one file that needs nothing else."""
    done: set[str] = set()

    def put(match: re.Match[str]) -> str:
        if match[1] in done:
            return ""
        done.add(match[1])
        text = source.headers[match[1]].replace("#pragma once\n", "")
        return f"// {match[1]}\n{_INCLUDE.sub(put, text).strip()}\n\n"

    return _INCLUDE.sub(put, source.text)


class _Exporter:
    def __init__(self, kernel: Kernel, printed: CudaSource) -> None:
        self.kernel, self.printed, self.plan = kernel, printed, printed.plan
        own = ["stream", "workspace", "packed", "status", "config", "attribute"]
        self.names = Names([*self.plan.kernels, *own, *TAKEN.split()])
        self.name = self.names.function(kernel.name, declared)
        program = kernel.program
        self.tensors = [p for p in program.parameters if p in program.tensors]
        self.workspace = {w.name: w for w in self.plan.workspaces}
        self.packed = {w.name: w for w in self.plan.packed}

    def files(self) -> CudaFiles:
        flags = f"-gencode=arch=compute_{self.plan.arch[3:]},code={self.plan.arch} -std=c++17 -O3 -fmad=false"
        called = (*self.tensors, *self.kernel.program.scalars)
        call = (f"{self.name}_on_host", called)
        words = "cudaGetErrorString((cudaError_t)status)"
        on_host = CSource("", "", self.name, (call,), flags, compiler="nvcc", suffix=".cu", failure=words)
        header, source = "\n".join(self._header(flags)), "\n".join(self._source())
        return CudaFiles(header, source, self.name, self.printed, flags, on_host)

    # -- the header ----------------------------------------------------------------------------------------------------

    def _header(self, flags: str) -> Iterator[str]:
        program, guard = self.kernel.program, f"{self.name.upper()}_H_INCLUDED"
        yield "/*"
        yield from (f" * {line}" for line in comment_lines(about(self.name, program), 112))
        yield from (f" *   {in_comment(line)}".rstrip() for line in ["", *function_text(program).splitlines()])
        if said := right_where(self.kernel):
            yield " *"
            yield from (f" * {line}" for line in comment_lines(said, 112))
        yield " *"
        yield f" * For {self.plan.arch}. Build: nvcc {flags} -c {self.name}.cu"
        yield " */"
        yield from (f"#ifndef {guard}", f"#define {guard}", "", "#include <cuda_runtime.h>", "#include <stdint.h>", "")
        yield from ("#ifdef __cplusplus", 'extern "C" {', "#endif", "")
        sizes = {"workspace": self._workspace_bytes, **{n: w.bytes for n, w in self.packed.items()}}
        lines = [f"  {self.name.upper()}_{n.upper()}_BYTES = {size}," for n, size in sizes.items() if size]
        if lines:
            yield from ("/* Memory on the GPU that the caller provides. */", "enum {", *lines, "};", "")
        if self.packed:
            yield "/* Lay out constants, once, before any call on them. */"
            yield from (self._prepare_prototype + ";", "")
        shapes = ", ".join(f"{n}: {program.tensors[n].dtype}{self._shape(n)}" for n in self.tensors)
        yield f"/* On the GPU: {shapes}."
        yield " * Row-major, aligned to 16 bytes, not overlapping; returns at once. */"
        yield from (self._prototype + ";", "")
        yield "/* The same for arrays of the host: copies them there and back, and waits. */"
        yield from (self._host_prototype + ";", "")
        yield from ("#ifdef __cplusplus", "}", "#endif", "", "#endif", "")

    def _shape(self, name: str) -> str:
        return "".join(f"[{n}]" for n in self.kernel.program.tensors[name].extents)

    @property
    def _workspace_bytes(self) -> int:
        return self.plan.workspace_bytes

    def _pointer(self, name: str, written: bool) -> str:
        program = self.kernel.program
        dtype = program.tensors[name].dtype if name in program.tensors else self._buffer(name).dtype
        return f"{'' if written else 'const '}{storage_type(dtype)} *{self.names(name)}"

    def _buffer(self, name: str) -> Buffer:
        return self.kernel.buffers[name]

    def _scalars(self) -> list[str]:
        return [f"{storage_type(s.dtype)} {self.names(s.name)}" for s in self.kernel.program.scalars.values()]

    @property
    def _prototype(self) -> str:
        written = self.kernel.program.written
        parameters = [self._pointer(n, n in written) for n in self.tensors]
        parameters += [self._pointer(n, False) for n in self.packed]
        parameters += [*self._scalars(), *(["void *workspace"] if self.workspace else []), "cudaStream_t stream"]
        return f"cudaError_t {self.name}({', '.join(parameters)})"

    @property
    def _prepare_prototype(self) -> str:
        used = dict.fromkeys(
            a.name for launch in self.plan.prepare for a in launch.arguments if isinstance(a, BufferArgument)
        )
        parameters = [self._pointer(n, False) for n in used if n not in self.packed]
        parameters += [self._pointer(n, True) for n in self.packed]
        return f"cudaError_t {self.name}_prepare({', '.join([*parameters, 'cudaStream_t stream'])})"

    @property
    def _host_prototype(self) -> str:
        written = self.kernel.program.written
        parameters = [self._pointer(n, n in written) for n in self.tensors] + self._scalars()
        return f"cudaError_t {self.name}_on_host({', '.join(parameters)})"

    # -- the source ----------------------------------------------------------------------------------------------------

    def _source(self) -> Iterator[str]:
        yield inlined(self.printed).rstrip()
        yield from ("", "// Launchers.", "", f'#include "{self.name}.h"', "#include <stddef.h>")
        if self.plan.maps:
            yield "#include <cuda.h>  // types alone: the encoder is asked of the runtime"
        yield from ("", "static cudaError_t start(const void *kernel, dim3 grid, dim3 block, unsigned cluster,")
        yield "                         size_t shared, cudaStream_t stream, void **arguments) {"
        yield "    cudaLaunchConfig_t config = {};"
        yield "    cudaLaunchAttribute attribute = {};"
        yield "    config.gridDim = grid;"
        yield "    config.blockDim = block;"
        yield "    config.dynamicSmemBytes = shared;"
        yield "    config.stream = stream;"
        yield "    if (cluster > 1) {"
        yield "        attribute.id = cudaLaunchAttributeClusterDimension;"
        yield "        attribute.val.clusterDim.x = cluster;"
        yield "        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;"
        yield "        config.attrs = &attribute;"
        yield "        config.numAttrs = 1;"
        yield "    }"
        yield "    if (shared > 49152) {"
        yield "        const cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize;"
        yield "        const cudaError_t status = cudaFuncSetAttribute(kernel, most, (int)shared);"
        yield "        if (status != cudaSuccess) return status;"
        yield "    }"
        yield "    return cudaLaunchKernelExC(&config, kernel, arguments);"
        yield "}"
        yield ""
        for tensor_map in self.plan.maps:
            yield from self._encoder(tensor_map)
        if self.packed:
            yield from self._function(self._prepare_prototype, self.plan.prepare)
        given = (*self.tensors, *self.packed, *self.kernel.program.scalars)
        yield from self._function(self._prototype, self.plan.launches, given)
        yield from self._on_host()

    def _encoder(self, m: TensorMapEncoding) -> Iterator[str]:
        yield f"static cudaError_t encode_{m.name}(CUtensorMap *map, const void *address) {{"
        entry = "cuTensorMapEncodeIm2col" if m.walk else "cuTensorMapEncodeTiled"
        box = "const int *, const int *, cuuint32_t, cuuint32_t" if m.walk else "const cuuint32_t *"
        yield "    typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,"
        yield f"                               const cuuint64_t *, const cuuint64_t *, {box},"
        yield "                               const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,"
        yield "                               CUtensorMapL2promotion, CUtensorMapFloatOOBfill);"
        yield "    static Encode encode = NULL;"
        yield "    if (encode == NULL) {"
        yield "        cudaDriverEntryPointQueryResult found;"
        yield "        const cudaError_t status = cudaGetDriverEntryPointByVersion("
        yield f'            "{entry}", (void **)&encode, 12000, cudaEnableDefault, &found);'
        yield "        if (status != cudaSuccess) return status;"
        yield "        if (found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;"
        yield "    }"
        shape = [("box", "cuuint32_t", m.box)]
        given = "box"
        if m.walk:
            shape = [("lower", "int", m.walk.lower), ("upper", "int", m.walk.upper)]
            given = f"lower, upper, {m.box[0]}, {m.box[1]}"
        for name, kind, values in (
            ("extents", "cuuint64_t", m.extents),
            ("strides", "cuuint64_t", m.strides or (0,)),
            *shape,
            ("steps", "cuuint32_t", (1, *m.walk.steps, 1) if m.walk else (1,) * len(m.extents)),
        ):
            yield f"    const {kind} {name}[] = {{{', '.join(map(str, values))}}};"
        swizzle = f"{m.swizzle}B" if m.swizzle else "NONE"
        yield f"    const CUresult done = encode(map, CU_TENSOR_MAP_DATA_TYPE_{map_type(m.dtype)}, {len(m.extents)},"
        yield f"                                 (void *)address, extents, strides, {given}, steps,"
        yield f"                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_{swizzle},"
        yield "                                 CU_TENSOR_MAP_L2_PROMOTION_L2_128B,"
        yield "                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);"
        yield "    return done == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;"
        yield "}"
        yield ""

    def _function(
        self, prototype: str, launches: tuple[Launch, ...], parameters: tuple[str, ...] = ()
    ) -> Iterator[str]:
        yield prototype + " {"
        used = {a.name for launch in launches for a in launch.arguments}
        offset = 0
        for w in self.workspace.values():
            if w.name in used:
                yield f"    void *{self.names(w.name)} = (char *)workspace + {offset};"
            offset += -(-w.bytes // ALIGNMENT) * ALIGNMENT
        used |= {m.buffer for m in self.plan.maps if m.name in used}
        # A constant beside what it was laid out to: no launch takes it.
        yield from (f"    (void){self.names(n)};" for n in parameters if n not in used)
        yield "    cudaError_t status = cudaSuccess;"
        for m in (m for m in self.plan.maps if m.name in used):
            yield f"    CUtensorMap {self.names(m.name)};"
            yield f"    if ((status = encode_{m.name}(&{self.names(m.name)}, {self.names(m.buffer)})) != cudaSuccess)"
            yield "        return status;"
        for launch in launches:
            yield from self._launch(launch)
        yield "    return status;"
        yield "}"
        yield ""

    def _launch(self, launch: Launch) -> Iterator[str]:
        grid, block = (f"dim3({', '.join(map(str, size))})" for size in (launch.grid, launch.block))
        listed = []
        for a in launch.arguments:
            match a:
                case BufferArgument(name) | ScalarArgument(name) | MapArgument(name):
                    listed.append(f"(void *)&{self.names(name)}")
        cluster = prod(launch.cluster)
        yield "    {"
        yield f"        void *arguments[] = {{{', '.join(listed)}}};"
        yield f"        status = start((const void *){launch.kernel}, {grid}, {block}, {cluster},"
        yield f"                       {launch.shared_bytes}, stream, arguments);"
        yield "        if (status != cudaSuccess) return status;"
        yield "    }"

    def _on_host(self) -> Iterator[str]:
        program = self.kernel.program
        yield self._host_prototype + " {"
        yield "    cudaError_t status = cudaSuccess;"
        sizes = {n: prod(program.tensors[n].extents) * program.tensors[n].dtype.bytes for n in self.tensors}
        held = sizes | {n: w.bytes for n, w in self.packed.items()}
        if self.workspace:
            held["workspace"] = self._workspace_bytes
        spots = {name: f"held[{i}]" for i, name in enumerate(held)}
        yield f"    void *held[{len(held)}] = {{NULL}};"
        yield f"    const size_t sizes[{len(held)}] = {{{', '.join(map(str, held.values()))}}};"
        yield f"    for (int i = 0; i < {len(held)} && status == cudaSuccess; ++i)"
        yield "        status = cudaMalloc(&held[i], sizes[i]);"
        step = "    if (status == cudaSuccess) status = "
        for n in (n for n in self.tensors if n in program.inputs):
            yield f"{step}cudaMemcpy({spots[n]}, {self.names(n)}, {sizes[n]}, cudaMemcpyHostToDevice);"

        def cast(name: str, written: bool) -> str:
            pointer = self._pointer(name, written)
            return f"({pointer[: pointer.rindex('*') + 1]}){spots[name]}"

        if self.packed:
            used = dict.fromkeys(
                a.name for launch in self.plan.prepare for a in launch.arguments if isinstance(a, BufferArgument)
            )
            given = [cast(n, False) for n in used if n not in self.packed] + [cast(n, True) for n in self.packed]
            yield f"{step}{self.name}_prepare({', '.join([*given, 'NULL'])});"
        given = [cast(n, n in program.written) for n in self.tensors] + [cast(n, False) for n in self.packed]
        given += [self.names(s) for s in program.scalars]
        given += [spots["workspace"]] if self.workspace else []
        yield f"{step}{self.name}({', '.join([*given, 'NULL'])});"
        yield f"{step}cudaDeviceSynchronize();"
        for n in program.outputs:
            yield f"{step}cudaMemcpy({self.names(n)}, {spots[n]}, {sizes[n]}, cudaMemcpyDeviceToHost);"
        yield f"    for (int i = 0; i < {len(held)}; ++i) cudaFree(held[i]);"
        yield "    return status;"
        yield "}"
