"""`operator_text`: an exported kernel as a PyTorch operator, a Python file that loads `NAME.so`; for CPUs and GPUs.

What the program says goes into literals and comments of the file; the rest of it is the same for every program.
"""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autosched.errors import UsageError
from autosched.escape import python_docstring
from autosched.ir.arguments import GivenScalar
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
    "e8m0": "float8_e8m0fnu",
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "float32",
    "f32": "float32",
    "f64": "float64",
}
"""PyTorch's names of element types."""
_SCALARS = {"f32": "c_float", "f64": "c_double"}
_SCALARS |= {f"s{bits}": f"c_int{bits}" for bits in (8, 16, 32, 64)}
_SCALARS |= {f"u{bits}": f"c_uint{bits}" for bits in (8, 16, 32, 64)}
_HINT = "export without --torch"

_CHECKS = """

def _checked(name, tensor):
    dtype, shape = _INPUTS[name]
    if tensor.dtype != getattr(torch, dtype) or list(tensor.shape) != shape:
        raise ValueError(f"{name} is {tensor.dtype}{list(tensor.shape)}, and the kernel takes torch.{dtype}{shape}")
    if tensor.device.type != _DEVICE:
        raise ValueError(f"{name} is on {tensor.device}, and the kernel takes tensors on {_DEVICE}")
    if not tensor.is_contiguous() or tensor.data_ptr() % (_ALIGNMENT or tensor.element_size()):
        raise ValueError(f"{name} is not contiguous, or not aligned: pass {name}.contiguous().clone()")
    return tensor


def _scalar(name, value):
    convert, least, most, special = _SCALARS[name]
    if not least <= value <= most and not (special and not math.isfinite(value)):
        raise ValueError(f"{name} is {value}, and the kernel takes {least} to {most}")
    return convert(value)


def _empty(device):
    made = {n: torch.empty(shape, dtype=getattr(torch, dtype), device=device) for n, (dtype, shape) in _OUTPUTS.items()}
    return made


def _answer(outputs):
    found = tuple(outputs.values())
    return found if len(found) > 1 else found[0]


def _call(tensors, scalars):
    inputs = {name: _checked(name, tensor) for name, tensor in zip(_INPUTS, tensors)}
    device = tensors[0].device if tensors else torch.device(_DEVICE)
    if any(t.device != device for t in tensors):
        raise ValueError("the tensors are on several devices")
    outputs = _empty(device)
    scalars = {name: _scalar(name, value) for name, value in zip(_SCALARS, scalars)}
    _launch(inputs, outputs, scalars, device)
    return _answer(outputs)

"""


@dataclass(frozen=True)
class Operator:
    """What differs between kinds of devices. `launch` is Python: `_launch(inputs, outputs, scalars, device)`, dicts
    by the program's names of tensors and of `ctypes` values; `constants` are what it reads, by name. Data starts at a
    multiple of `alignment` bytes (0: of an element). `build` is the command that makes the library."""

    name: str
    device: str
    launch: str
    constants: Mapping[str, Any]
    build: str
    alignment: int = 0


def operator_text(program: Program, operator: Operator) -> str:
    """The text of `NAME_torch.py`.

    UsageError where PyTorch has no such type, an array is read and written, or Python needs the name.
    """
    name = operator.name
    if keyword.iskeyword(name) or name in sys.stdlib_module_names or name in ("torch", "numpy"):
        raise UsageError(f"no operator {name}: Python has one", hint="give the file another name")
    if program.inouts:
        raise UsageError(f"no operator: {program.inouts[0]} is read and written", hint=_HINT)
    inputs = [p for p in program.parameters if p in program.tensors and p in program.inputs]
    if not inputs and operator.device != "cpu":
        raise UsageError("no operator: without an input nothing says which GPU is meant", hint=_HINT)
    called = _parameters(program)
    kinds = dict.fromkeys(inputs, "torch.Tensor") | {n: _python(program, n) for n in program.scalars}
    signature = ", ".join(f"{called[n]}: {kind}" for n, kind in kinds.items())
    results = len(program.outputs)
    answer = "torch.Tensor" if results == 1 else f"tuple[{', '.join(['torch.Tensor'] * results)}]"
    shown = ", ".join(called[n] for n in kinds)
    head = f"{name} as a PyTorch operator: `torch.ops.autosched.{name}({shown})`.\n\n"
    head += f"Build the library first: {operator.build}\n"
    constants = {
        "_DEVICE": operator.device,
        "_ALIGNMENT": operator.alignment,
        "_INPUTS": {n: _described(program, n) for n in inputs},
        "_OUTPUTS": {n: _described(program, n) for n in program.outputs},
        **operator.constants,
    }
    scalars = ", ".join(f"{n!a}: {_scalar(program, n)}" for n in program.scalars)
    tensors = "".join(f"{called[n]}, " for n in inputs)
    values = "".join(f"{called[n]}, " for n in program.scalars)
    return "\n".join([
        python_docstring(head),
        "",
        "import ctypes",
        "import math",
        "from pathlib import Path",
        "",
        "import torch",
        "",
        f'_library = ctypes.CDLL(str(Path(__file__).resolve().with_name("{name}.so")))',
        *(f"{constant} = {value!a}" for constant, value in constants.items()),
        f"_SCALARS = {{{scalars}}}",
        _CHECKS,
        operator.launch.strip(),
        "",
        "",
        f'@torch.library.custom_op("autosched::{name}", mutates_args=())',
        f"def {name}({signature}) -> {answer}:",
        f"    {python_docstring(' '.join(program.doc.split()) or name)}",
        f"    return _call(({tensors}), ({values}))",
        "",
        "",
        f"@{name}.register_fake",
        f"def _({signature}):",
        f"    return _answer(_empty({called[inputs[0]] + '.device' if inputs else '_DEVICE'}))",
        "",
    ])  # fmt: skip


def _parameters(program: Program) -> dict[str, str]:
    """What the operator calls tensors and scalars: PyTorch's schemas know ASCII only, and the file has names itself."""
    taken = {"torch", "ctypes", "math", "Path", "self", *dir(builtins), *keyword.kwlist, *keyword.softkwlist}
    called = {}
    for name in program.parameters:
        base = re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("_") or "v"
        while base in taken or not base[0].isalpha():
            base = f"{base}_" if base[0].isalpha() else f"v{base}"
        taken.add(base)
        called[name] = base
    return called


def _described(program: Program, name: str) -> tuple[str, list[int]]:
    tensor = program.tensors[name]
    if tensor.dtype.name not in TYPES:
        raise UsageError(f"PyTorch has no type for {name}: {tensor.dtype}", hint=_HINT)
    return TYPES[tensor.dtype.name], list(tensor.extents)


def _python(program: Program, name: str) -> str:
    return "float" if program.scalars[name].dtype.is_float else "int"


def _scalar(program: Program, name: str) -> str:
    """A run-time scalar: how `ctypes` passes it, its least and greatest value, and whether it may be infinite or NaN.
    UsageError for a small float, which C has no type for."""
    dtype = program.scalars[name].dtype
    if dtype.name not in _SCALARS:
        raise UsageError(f"no operator with a scalar of {dtype}: {name}", hint=_HINT)
    argument = GivenScalar.of(program, name)
    least, most = argument.limits
    return f"(ctypes.{_SCALARS[dtype.name]}, {least!r}, {most!r}, {dtype.is_float and not argument.assumed})"
