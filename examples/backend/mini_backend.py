"""A backend as a package brings it: a small machine whose kernels are OpenCL C of one work item.

The printer stands on what C and CUDA share (`autosched.codegen.c_like`). The device stands in for the machine: it
builds the text with the C compiler of this one, so its times are this machine's. `pyproject.toml` offers both by entry
points. In this folder, after `pip install --no-deps .`:

    autosched tune matmul -D m=64 -D n=64 -D k=64 -D a=s8 -D b=s8 -t mini.yaml --intrinsics dot.yaml -n 4
    autosched show --as mini
    autosched export -o matmul.cl
"""

import ctypes
import hashlib
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from autosched.backends import Backend, Language
from autosched.codegen.c_like.blocks import loop_head, under
from autosched.codegen.c_like.ctypes import storage_type
from autosched.codegen.c_like.helpers import ordered
from autosched.codegen.c_like.indices import INDEX_TYPE, IndexPrinter, loop_range
from autosched.codegen.c_like.names import Names, Spelling
from autosched.codegen.c_like.values import CLikeValuePrinter
from autosched.codegen.lower import lower
from autosched.codegen.print_functions import PrintFunctions
from autosched.codegen.tree.kernel import Assign, Comment, For, If, IntrinsicCall, Prefetch, StoreFence
from autosched.device.correctness.oracle import compute
from autosched.device.protocol import Build
from autosched.errors import AutoschedError, SpecError
from autosched.logic import TRUE, Int
from autosched.store import Measurement
from autosched.tensorize.spec.emit import render

OUTSIDE = ("global", "packed", "workspace")
"""Buffers that functions are given."""
HEAD = """\
#ifdef __OPENCL_VERSION__
typedef char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef uchar uint8_t; typedef ushort uint16_t; typedef uint uint32_t; typedef ulong uint64_t;
#else
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define kernel
#define global
#define private
#endif

/* The instruction, c += a b, for a machine that lacks it. */
static void dot4x4(private int8_t *a, private int8_t *b, private int32_t *c) {
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 4; ++k) c[i] += a[4 * i + k] * b[k];
}
"""


class TextPrinter:
    """Prints one kernel. Registers are private arrays, lanes a loop, instructions calls on a register's address."""

    def __init__(self, kernel):
        self.kernel, self.names, self.used, self.ranges = kernel, Names(), set(), {}
        self.index = IndexPrinter(Spelling(self.names), self.ranges, self.used.add)
        self.values = CLikeValuePrinter(self.index, self.read, self.names, self.used.add)

    def text(self):
        name, main = self.kernel.name, self.kernel.main
        prepared = [self.function(f"{name}_{f.name}", f) for f in self.kernel.prepare]
        functions = [*prepared, self.function(name, main)]
        return "\n".join([HEAD, *ordered(self.used).values(), "", *functions])

    def function(self, name, function):
        buffers = self.kernel.buffers
        taken = [f"global {storage_type(buffers[b].dtype)} *{self.names(b)}" for b in function.buffers]
        taken += [f"{storage_type(s.dtype)} {self.names(s.name)}" for s in self.kernel.program.scalars.values()]
        registers = [b for b in buffers.values() if b.scope not in OUTSIDE]
        held = [f"  private {storage_type(b.dtype)} {self.names(b.name)}[{b.elements}];" for b in registers]
        body = [f"  {line}" for line in self.body(function.body)]
        return "\n".join([f"kernel void {name}({', '.join(taken)}) {{", *held, *body, "}", ""])

    def body(self, statements):
        return [line for stmt in statements for line in self.statement(stmt)]

    def statement(self, stmt):
        match stmt:
            case For(var, lower, upper, body, step=step):
                if (known := loop_range(lower, upper, step, self.ranges)) is not None:
                    self.ranges[var] = known
                first, end = self.index.number(lower), self.index.number(upper)
                head = loop_head(INDEX_TYPE, self.index.names[var], end, first, step)
                yield from under(head, self.body(body), "  ", 0)
            case If(condition, body):
                yield from under(f"if ({self.index.condition(condition)})", self.body(body), "  ", 0)
            case Assign(buffer, index, value, lane, valid):
                if lane is not None:
                    self.ranges[lane.var] = (0, lane.width - 1)
                line = f"{self.element(buffer, index)} = {self.values.stored(value)};"
                if valid != TRUE:  # other lanes of a register become zero, other elements of memory stay
                    outside = self.kernel.buffers[buffer].scope in OUTSIDE
                    other = "" if outside else f" else {self.element(buffer, index)} = 0;"
                    line = f"if ({self.index.condition(valid)}) {line}{other}"
                if lane is None:
                    yield line
                else:
                    yield from under(loop_head(INDEX_TYPE, self.index.names[lane.var], lane.width), [line], "  ", 100)
            case IntrinsicCall(intrinsic, operands):
                if "mini" not in intrinsic.emit:
                    raise SpecError(f"{intrinsic.name} has no text for a mini machine", hint="give it emit: {mini: …}")
                given = {name: f"&{self.element(ref.buffer, (*ref.index, 0))}" for name, ref in operands.items()}
                yield render(intrinsic, "mini", given) + ";"
            case Prefetch() | StoreFence() | Comment():
                pass
            case _:
                raise SpecError(f"a mini machine has no {type(stmt).__name__}")

    def element(self, buffer, index):
        """An element of a row-major array, by its place."""
        place = "0"
        for extent, subscript in zip(self.kernel.buffers[buffer].shape, index, strict=True):
            number = self.index.number(subscript, 5) if isinstance(subscript, Int) else self.subscript(subscript)
            place = number if place == "0" else f"({place}) * {extent} + {number}"
        return f"{self.names(buffer)}[{place}]"

    def subscript(self, given):
        return str(given) if isinstance(given, int) else f"({self.values.value(given)})"  # data may be a subscript

    def read(self, read):
        """An element as it is stored."""
        return self.element(read.tensor, read.index)


def text(kernel, target):
    """The kernel, and the functions that pack its constants before."""
    return TextPrinter(kernel).text()


FUNCTIONS = PrintFunctions(text)
LANGUAGE = Language("mini", "OpenCL C", "mini machine", ".cl", functions="mini_backend:FUNCTIONS")
MINI = Backend("mini", language=LANGUAGE, device="mini", emits="mini", compiles="mini")


COMMAND = ("cc", "-std=gnu11", "-O2", "-ffp-contract=off", "-shared", "-fPIC")


class MiniDevice:
    """Builds kernels with the C compiler of this machine, checks and times them. They run in this process, which a
    wrong kernel may end: `autosched.device.processes` is what `cpu` puts them in."""

    def __init__(self, program=None, target=None, *, threads=1, seed=0, cache="warm"):
        self.target, self.options = target, {"threads": threads, "cache": cache}
        self.oracle = None if program is None else compute(program, seed)
        self.folder = tempfile.TemporaryDirectory()

    @staticmethod
    def runs(target):
        """Whether `-d auto` takes it for a target of the backend."""
        return shutil.which("cc") is not None

    def describe(self):
        return {"name": "mini", "kind": "mini", **self.options}

    def build(self, candidate):
        try:
            kernel = lower(candidate.plan, candidate.schedule)
            source = text(kernel, self.target)
        except AutoschedError as error:
            return Build(candidate, error=error.message)
        sha = hashlib.sha256(source.encode()).hexdigest()[:16]
        file = Path(self.folder.name) / f"{sha}.c"
        file.write_text(source)
        library = file.with_suffix(".so")
        done = subprocess.run([*COMMAND, file, "-o", library, "-lm"], capture_output=True, text=True, check=False)
        if done.returncode:
            return Build(candidate, error=done.stderr)
        return Build(candidate, (kernel, library), kernel_sha=sha)

    def measure(self, build, repeats="search"):
        if build.error is not None:
            return Measurement("build", message=build.error)
        kernel, library = build.payload
        loaded, arrays = ctypes.CDLL(str(library)), self.arrays(kernel)
        types = {name: np.ctypeslib.as_ctypes_type(s.dtype.numpy) for name, s in kernel.program.scalars.items()}
        scalars = [kind(self.oracle.scalars[name]) for name, kind in types.items()]

        def call(name, function):
            given = [arrays[b].ctypes.data_as(ctypes.c_void_p) for b in function.buffers]
            began = time.perf_counter()
            getattr(loaded, name)(*given, *scalars)
            return time.perf_counter() - began

        for function in kernel.prepare:
            call(f"{kernel.name}_{function.name}", function)
        call(kernel.name, kernel.main)
        error, allowed = 0.0, 0.0
        for name, wanted in self.oracle.wants.items():
            tolerance = self.oracle.tolerances[name]
            off = np.abs(arrays[name].astype(np.float64) - wanted.astype(np.float64))
            if (off > (0 if tolerance is None else tolerance)).any():
                return Measurement("wrong", message=f"{name} differs", kernel_sha=build.kernel_sha)
            error, allowed = max(error, off.max()), max(allowed, 0.0 if tolerance is None else np.max(tolerance))
        times = tuple(call(kernel.name, kernel.main) for _ in range(31 if repeats == "final" else 7))
        said = {"max_abs_error": float(error), "tolerance": float(allowed)}
        return Measurement("ok", statistics.median(times), times, kernel_sha=build.kernel_sha, **said)

    def arrays(self, kernel):
        """Memory of one call: inputs, and zeros."""
        outside = [b for b in kernel.buffers.values() if b.scope in OUTSIDE]
        given = self.oracle.inputs
        return {b.name: given[b.name].copy() if b.name in given else np.zeros(b.shape, b.dtype.numpy) for b in outside}

    def close(self):
        self.folder.cleanup()
