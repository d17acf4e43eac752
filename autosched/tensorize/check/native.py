"""Issue an intrinsic on this machine: LLVM IR from its emission text, run in an isolated worker."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, cast

import numpy as np
import numpy.typing as npt

from autosched.backends import backend_of
from autosched.errors import SpecError
from autosched.ir.dtypes import DType
from autosched.permission import asked_of
from autosched.scratch import scratch_errors
from autosched.tensorize.check.emulator import EmulatedCalls, Emulator, LackingError
from autosched.tensorize.intrinsic import Intrinsic, Operand
from autosched.tensorize.matrices import Matrices
from autosched.tensorize.spec.emit import llvm_declarations, render, render_llvm
from autosched.tensorize.spec.keys.matrix_ir import Uses

Values = npt.NDArray[np.generic]
Arrays = dict[str, Values]
DEADLINE_S = 60.0


class NativeError(Exception):
    """The worker refused the code, crashed, or did not answer in time."""


def issue_ir(intrinsic: Intrinsic) -> str:
    """A function `issue(operand pointers…)`: load the registers, issue the intrinsic once, store the result."""
    if intrinsic.matrices is not None:
        return _matrix_ir(intrinsic, intrinsic.matrices)
    names = {o: f"%r.{n}" for n, o in enumerate(intrinsic.operands)}
    numbers = count()
    body, result = render_llvm(intrinsic, names, lambda: f"%t{next(numbers)}")
    registers = {o: operand.registers["llvm"] for o, operand in intrinsic.operands.items()}
    pointers = {o: f"%p.{n}" for n, o in enumerate(intrinsic.operands)}
    loads = [f"{names[o]} = load {registers[o]}, ptr {pointers[o]}, align 1" for o in intrinsic.operands]
    written = intrinsic.accumulator.name
    store = f"store {registers[written]} {result}, ptr {pointers[written]}, align 1"
    lines = [
        *llvm_declarations(intrinsic),
        f"define void @issue({', '.join(f'ptr {p}' for p in pointers.values())}) {{",
    ]
    return "\n".join([*lines, *(f"  {line}" for line in [*loads, *body, store, "ret void"]), "}", ""])


def _matrix_ir(intrinsic: Intrinsic, matrices: Matrices) -> str:
    """The same of an instruction on numbered registers that hold matrices."""
    used, stride = Uses(matrices), matrices.row_bytes
    numbers = {o: n for n, o in enumerate(intrinsic.operands)}
    written = numbers[intrinsic.accumulator.name]
    lines = [used("configure", configuration="@configuration")]
    lines += [used("load", register=n, address=f"%p.{n}", stride=stride) for n in numbers.values()]
    lines.append(used.line(render(intrinsic, "llvm", {o: str(n) for o, n in numbers.items()})))
    lines += [used("store", register=written, address=f"%p.{written}", stride=stride), used("release"), "  ret void"]
    head = f"define void @issue({', '.join(f'ptr %p.{n}' for n in numbers.values())}) {{"
    return "\n".join([used.constant("@configuration"), *used.declared, head, *lines, "}", ""])


class NativeRunner:
    """A worker process, started at the first use and again after a crash. Use as a context manager.

    >>> from autosched.tensorize.spec.catalogue import Catalogue
    >>> mac = Catalogue.builtin()["portable/mac.s8.s8.s32.v4"]
    >>> ones, tens = np.ones((1, 4), np.int8), np.full((1, 4), 10, np.int32)    # (cases, *shape of the operand)
    >>> with NativeRunner() as runner:
    ...     runner.issue(mac, {"a": ones, "b": ones, "c": tens})
    array([[11, 11, 11, 11]], dtype=int32)
    """

    def __init__(self, deadline_s: float = DEADLINE_S) -> None:
        self.deadline_s = deadline_s
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None

    def __enter__(self) -> NativeRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        if self._said is not None:
            self._said.close()
            self._said = None

    def issue(self, intrinsic: Intrinsic, arrays: Arrays, emulator: Emulator | None = None) -> Values:
        """The accumulator after one issue, shape (cases, *shape); NativeError where that is not possible.

        With an `emulator` of its isa the code runs there (EmulatorError where it does not), else on this machine.
        """
        operands = list(intrinsic.operands.values())
        parts = [register_bytes(o, arrays[o.name]) for o in operands]
        cases = len(parts[0])
        written = [o.written for o in operands].index(True)
        sizes, data = [p.shape[1] for p in parts], np.concatenate(parts, axis=1).tobytes()
        if emulator is not None:
            every = tuple(range(len(sizes)))
            calls = EmulatedCalls(tuple(sizes), (("issue", every),), every, (written,))
            code = self._compiled(intrinsic)
            if not code:
                raise LackingError(f"this LLVM makes no code for {intrinsic.isa}")
            raw = emulator.run([code], calls, data)
        else:
            asked = [[p.number, *p.arguments] for p in asked_of(intrinsic.requires)]
            head = {"ir": issue_ir(intrinsic), "operands": sizes, "cases": cases, "written": written, "ask": asked}
            raw = self._ask(json.dumps(head).encode() + b"\n" + data)
        rows = np.frombuffer(raw, np.uint8).reshape(cases, -1)
        return from_register_bytes(operands[written], rows)

    def parse(self, intrinsic: Intrinsic) -> str | None:
        """The core that the emission text was compiled for, None where LLVM only read it; NativeError where it does not
        accept the text. Runs nothing, so any machine can do it."""
        core = backend_of(intrinsic.isa).core
        return core[1] if self._compiled(intrinsic) and core else None

    def _compiled(self, intrinsic: Intrinsic) -> bytes:
        """The object for its isa's core; nothing where LLVM only read the text."""
        head: dict[str, object] = {"ir": issue_ir(intrinsic), "operands": [], "cases": 0, "written": 0}
        head["core"] = backend_of(intrinsic.isa).core
        return self._ask(json.dumps(head).encode() + b"\n")

    def _ask(self, request: bytes) -> bytes:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-P", str(Path(__file__).with_name("native_worker.py"))]
            pipe = subprocess.PIPE
            self.close()
            with scratch_errors():
                self._said = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close)
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._said)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(self.deadline_s, process.kill)
        timer.start()
        try:
            process.stdin.write(request)
            process.stdin.flush()
            line = process.stdout.readline()
            answer = json.loads(line) if line else {}
            blob = process.stdout.read(answer["bytes"]) if "bytes" in answer else b""
        except BrokenPipeError:
            answer, blob = {}, b""
        finally:
            timer.cancel()
        if "error" in answer:
            raise NativeError(str(answer["error"]).strip())
        if "bytes" not in answer or len(blob) != answer["bytes"]:
            process.kill()
            process.wait()
            last = self._last_words()
            self.close()
            raise NativeError("compiling or running it ended the worker process" + (f": {last}" if last else ""))
        return blob

    def _last_words(self) -> str:
        """What LLVM wrote before it gave up, on one line."""
        if self._said is None:
            return ""
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        telling = [line for line in lines if "ERROR" in line or "Assertion" in line] or lines[-1:]
        return telling[0][-300:] if telling else ""


def register_bytes(operand: Operand, values: Values) -> npt.NDArray[np.uint8]:
    """Registers as memory, shape (cases, bytes): element `e` of the operand's order at its place, low element first."""
    image, _ = operand.order.points()
    flat = values.reshape(len(values), *operand.shape)[(slice(None), *image)]
    return _packed(np.ascontiguousarray(flat), operand.dtype)


def from_register_bytes(operand: Operand, rows: npt.NDArray[np.uint8]) -> Values:
    """The inverse of `register_bytes`."""
    image, _ = operand.order.points()
    flat = _unpacked(rows, operand.dtype, operand.elements)
    out = np.empty((len(rows), *operand.shape), operand.dtype.numpy)
    out[(slice(None), *image)] = flat
    return out


def _packed(flat: Values, dtype: DType) -> npt.NDArray[np.uint8]:
    raw = flat.view(np.uint8).reshape(len(flat), -1)
    if dtype.bits >= 8:
        return raw
    if flat.shape[1] * dtype.bits % 8:
        raise SpecError(f"{flat.shape[1]} elements of {dtype} do not fill whole bytes")
    bits = (raw[:, :, None] >> np.arange(dtype.bits, dtype=np.uint8)) & np.uint8(1)
    return np.packbits(bits.reshape(len(flat), -1), axis=1, bitorder="little")


def _unpacked(rows: npt.NDArray[np.uint8], dtype: DType, elements: int) -> Values:
    if dtype.bits >= 8:
        return cast(Values, np.ascontiguousarray(rows).view(dtype.numpy).reshape(len(rows), elements))
    bits = np.unpackbits(rows, axis=1, bitorder="little").reshape(len(rows), elements, dtype.bits)
    numbers = (bits << np.arange(dtype.bits, dtype=np.uint8)).sum(axis=2)
    if dtype.kind == "int":
        numbers = numbers.astype(np.int64) - ((numbers >> (dtype.bits - 1)) << dtype.bits).astype(np.int64)
    if dtype.is_float:
        return cast(Values, np.ascontiguousarray(numbers.astype(np.uint8)).view(dtype.numpy))
    return cast(Values, numbers.astype(np.int8 if dtype.kind == "int" else np.uint8).astype(dtype.numpy))
