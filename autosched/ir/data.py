"""Values of `const` data that are known while matching and tuning: their range, their hash, and what follows for
tensors that are prepared from them.

>>> from autosched.ir import workload
>>> with_data(workload("gemv", m=4, k=4), {"A": np.eye(4, dtype=np.float32)}).data["A"].text
'3759326725c98192'
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.errors import UnknownNameError, UsageError
from autosched.ir.dtypes import DType
from autosched.ir.oracle.assumed import assumed_range
from autosched.ir.oracle.interpreter import run
from autosched.ir.prepared import assigns
from autosched.ir.program import KnownData, Program
from autosched.ir.value import reads

Array = npt.NDArray[Any]


def with_data(program: Program, data: Mapping[str, Any]) -> Program:
    """The program with the actual values of `const` tensors, by name.

    Raises UnknownNameError for a name that is no tensor parameter, UsageError for one that is not const, for another
    dtype or shape, for values that `assume` rules out, and where a size is symbolic.
    """
    found = {}
    for name, values in data.items():
        tensors = [p for p in program.parameters if p in program.tensors]
        if name not in tensors:
            raise UnknownNameError("tensor", name, tensors)
        if not program.tensors[name].const:
            hint = f"mark it {name}: const[…] where its values are the same in every call"
            raise UsageError(f"data for {name}, which is not const", hint=hint)
        if program.symbolic:
            raise UsageError(f"data for {name}, and the size {next(iter(program.symbolic))} is a range", hint="set it")
        found[name] = _known(program, name, values)
    return replace(program, data={**program.data, **found}) if found else program


def digest(values: Array, dtype: DType, shape: tuple[int, ...]) -> str:
    """SHA-256 of dtype, shape and elements (row-major, little-endian), in hexadecimal."""
    plain = np.ascontiguousarray(values)
    head = f"{dtype}{list(shape)}:".encode()
    little = plain.dtype.newbyteorder("<") if plain.dtype.kind in "iufc" else plain.dtype
    return hashlib.sha256(head + plain.astype(little, copy=False).tobytes()).hexdigest()


def require_data(program: Program, arrays: Mapping[str, Any]) -> None:
    """UsageError where an array is not the data that the program was given for it: what was proved of those values
    need not hold of others."""
    for name, known in program.data.items():
        tensor = program.tensors[name]
        if name in arrays and digest(np.asarray(arrays[name]), tensor.dtype, tensor.extents) != known.sha256:
            hint = "tune with --data for these values, or without"
            raise UsageError(f"{name} does not hold the values that this kernel was made for ({known.text})", hint=hint)


def known_values(program: Program, tensor: str) -> KnownData | None:
    """What is known of a tensor's elements: those of given data, and those that are prepared from such data alone."""
    return program.data.get(tensor) or (prepared_data(program).get(tensor) if program.data else None)


def _known(program: Program, name: str, values: Any) -> KnownData:
    tensor = program.tensors[name]
    wanted = f"{np.dtype(tensor.dtype.numpy)}{list(tensor.extents)}"
    if not isinstance(values, np.ndarray):
        raise UsageError(f"data for {name} is a {type(values).__name__}, not a numpy array", hint=f"give {wanted}")
    if values.dtype.kind == "V" and values.dtype.itemsize == np.dtype(tensor.dtype.numpy).itemsize:
        values = values.view(tensor.dtype.numpy)  # how .npy files hold bf16 and other types that numpy lacks
    if values.dtype != np.dtype(tensor.dtype.numpy) or values.shape != tensor.extents:
        raise UsageError(f"data for {name} is {values.dtype}{list(values.shape)}, {name} is {wanted}")
    known = _measured(values, tensor.dtype, tensor.extents)
    low, high = assumed_range(program, name)
    least, greatest = values.min(), values.max()
    if (low is not None and least < low) or (high is not None and greatest > high):
        between = " <= ".join(str(x) for x in (low, name, high) if x is not None)
        raise UsageError(f"data for {name} lies in [{least}, {greatest}], and the program assumes {between}")
    return known


def _measured(values: Array, dtype: DType, shape: tuple[int, ...]) -> KnownData:
    kept = np.array(values, order="C")
    kept.flags.writeable = False
    low, high = (int(kept.min()), int(kept.max())) if dtype.is_integer else (None, None)
    return KnownData(digest(kept, dtype, shape), low, high, kept)


def prepared_data(program: Program) -> dict[str, KnownData]:
    """What `Program.data` says of the tensors that are prepared from it; the oracle computes it once a program."""
    if "prepared_data" not in program.cache:
        program.cache["prepared_data"] = _prepared_data(program)
    found: dict[str, KnownData] = program.cache["prepared_data"]
    return found


def _prepared_data(program: Program) -> dict[str, KnownData]:
    given = {n: d.values for n, d in program.data.items() if d.values is not None}
    sources: dict[str, set[str]] = {}
    for stmt in program.body:
        for a in assigns(stmt):
            if a.tensor in program.prepared:
                sources.setdefault(a.tensor, set()).update(_read(stmt) - {a.tensor})
    follows: list[str] = []
    for name in program.prepared:
        if sources.get(name, set()) <= {*given, *follows}:
            follows.append(name)
    if not follows:
        return {}
    tensors = {n: replace(program.tensors[n], intermediate=False, const=n in given) for n in (*given, *follows)}
    body = tuple(s for s in program.body if {a.tensor for a in assigns(s)} <= set(follows))
    small = replace(
        program, tensors=tensors, scalars={}, parameters=tuple(tensors), body=body, assumptions=(), data={}, source=""
    )
    unwritten = (n for n in small.inputs if n not in given)  # some of their elements: nothing reads those
    blank = {n: np.zeros(tensors[n].extents, tensors[n].dtype.numpy) for n in unwritten}
    computed = run(small, given | blank)
    return {n: _measured(computed[n], tensors[n].dtype, tensors[n].extents) for n in follows}


def _read(stmt: Any) -> set[str]:
    return {r.tensor for a in assigns(stmt) for r in reads(a.value)}
