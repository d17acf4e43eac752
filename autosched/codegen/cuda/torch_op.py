"""`torch_op`: an exported kernel as a PyTorch operator: a Python file that loads `NAME.so`.

Nothing is copied: tensors are used where they are, on PyTorch's current stream. It works under `torch.compile`.
"""

from __future__ import annotations

import json
from typing import Any

from autosched.codegen.cuda.files import CudaFiles
from autosched.codegen.kernel import Kernel
from autosched.errors import UsageError
from autosched.ir.program import Program

TYPES = {
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "s8": "int8",
    "s16": "int16",
    "s32": "int32",
    "s64": "int64",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "float32",
    "f32": "float32",
    "f64": "float64",
}
"""PyTorch's names of element types."""

_TEXT = '''"""@NAME@ as a PyTorch operator: `torch.ops.autosched.@NAME@(@INPUTS@)`.

Build the library first: nvcc @FLAGS@ -shared -Xcompiler -fPIC @NAME@.cu -o @NAME@.so
Tensors stay where they are; the kernel runs on the current stream of their device.
"""

import ctypes
from pathlib import Path

import torch

_library = ctypes.CDLL(str(Path(__file__).with_name("@NAME@.so")))
_TENSORS = @TENSORS@
"""Inputs: name to element type and shape."""
_OUTPUTS = @OUTPUTS@
_PACKED = @PACKED@
"""Bytes of constants that are laid out anew."""
_WORKSPACE = @WORKSPACE@


def _checked(name, tensor):
    dtype, shape = _TENSORS[name]
    if tensor.dtype != getattr(torch, dtype) or list(tensor.shape) != shape:
        raise ValueError(f"{name} is {tensor.dtype}{list(tensor.shape)}, and the kernel takes torch.{dtype}{shape}")
    if not tensor.is_cuda:
        raise ValueError(f"{name} is on {tensor.device}: move it to the GPU")
    if not tensor.is_contiguous() or tensor.data_ptr() % 16:
        raise ValueError(f"{name} is not contiguous, or not aligned to 16 bytes: pass {name}.contiguous().clone()")
    return tensor


def _empty(name, device):
    dtype, shape = _OUTPUTS[name]
    return torch.empty(shape, dtype=getattr(torch, dtype), device=device)


def _bytes(size, device):
    return torch.empty(size, dtype=torch.uint8, device=device)


def _done(status):
    if status:
        raise RuntimeError(f"@NAME@: CUDA error {status}")


def _call(inputs, scalars):
    names = list(inputs)
    for name in names:
        _checked(name, inputs[name])
    device = inputs[names[0]].device
    if any(t.device != device for t in inputs.values()):
        raise ValueError("the tensors are on several devices")
    with torch.cuda.device(device):
        stream = ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream)
        outputs = {name: _empty(name, device) for name in _OUTPUTS}
        arrays = inputs | outputs
        packed = [_bytes(size, device) for size in _PACKED]
        if packed:
            sources = [ctypes.c_void_p(inputs[n].data_ptr()) for n in @SOURCES@]
            _done(_library.@NAME@_prepare(*sources, *(ctypes.c_void_p(p.data_ptr()) for p in packed), stream))
        given = [ctypes.c_void_p(arrays[n].data_ptr()) for n in @ORDER@]
        given += [ctypes.c_void_p(p.data_ptr()) for p in packed]
        given += scalars
        work = _bytes(_WORKSPACE, device) if _WORKSPACE else None
        given += [ctypes.c_void_p(work.data_ptr())] if work is not None else []
        _done(_library.@NAME@(*given, stream))
    return @RESULT@


@torch.library.custom_op("autosched::@NAME@", mutates_args=())
def @NAME@(@SIGNATURE@) -> @ANSWER@:
    """@DOC@"""
    return _call({@GIVEN@}, [@SCALARS@])


@@NAME@.register_fake
def _(@SIGNATURE@):
    outputs = {name: _empty(name, @FIRST@.device) for name in _OUTPUTS}
    return @RESULT@
'''


def torch_op(kernel: Kernel, files: CudaFiles) -> str:
    """The text of `NAME_torch.py`. UsageError where PyTorch has no such type, or an array is read and written."""
    program, plan = kernel.program, files.printed.plan
    if program.inouts:
        raise UsageError(f"no operator: {program.inouts[0]} is read and written", hint="export without --torch")
    inputs = [p for p in program.parameters if p in program.tensors and p in program.inputs]
    outputs = list(program.outputs)
    order = [p for p in program.parameters if p in program.tensors]
    scalars = list(program.scalars)
    sources = dict.fromkeys(a.name for launch in plan.prepare for a in launch.arguments if a.name in inputs)
    result = "outputs[" + json.dumps(outputs[0]) + "]"
    if len(outputs) > 1:
        result = "(" + ", ".join(f"outputs[{json.dumps(n)}]" for n in outputs) + ")"
    signature = [f"{n}: torch.Tensor" for n in inputs] + [f"{n}: {_python(program, n)}" for n in scalars]
    words: dict[str, str] = {
        "TENSORS": repr({n: _described(program, n) for n in inputs}),
        "OUTPUTS": repr({n: _described(program, n) for n in outputs}),
        "PACKED": repr([w.bytes for w in plan.packed]),
        "WORKSPACE": str(plan.workspace_bytes),
        "SOURCES": repr(tuple(sources)),
        "ORDER": repr(order),
        "RESULT": result,
        "SIGNATURE": ", ".join(signature),
        "ANSWER": "torch.Tensor" if len(outputs) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(outputs))}]",
        "GIVEN": ", ".join(f"{json.dumps(n)}: {n}" for n in inputs),
        "SCALARS": ", ".join(_passed(program, n) for n in scalars),
        "FIRST": inputs[0],
        "INPUTS": ", ".join([*inputs, *scalars]),
        "FLAGS": files.flags,
        "DOC": " ".join(program.doc.split()) or files.name,
        "NAME": files.name,
    }
    text = _TEXT
    for word, meaning in words.items():
        text = text.replace(f"@{word}@", meaning)
    return text


def _described(program: Program, name: str) -> tuple[str, list[int]]:
    tensor = program.tensors[name]
    if tensor.dtype.name not in TYPES:
        raise UsageError(f"PyTorch has no type for {name}: {tensor.dtype}", hint="export without --torch")
    return TYPES[tensor.dtype.name], list(tensor.extents)


def _python(program: Program, name: str) -> str:
    return "float" if program.scalars[name].dtype.is_float else "int"


def _passed(program: Program, name: str) -> str:
    """A run-time scalar as `ctypes` passes it. UsageError for a small float, which C has no type for."""
    dtype = program.scalars[name].dtype
    kinds: dict[str, Any] = {"f32": "float", "f64": "double", "s32": "int32", "u32": "uint32", "s64": "int64"}
    if dtype.name not in kinds:
        raise UsageError(f"no operator with a scalar of {dtype}: {name}", hint="export without --torch")
    return f"ctypes.c_{kinds[dtype.name]}({name})"
