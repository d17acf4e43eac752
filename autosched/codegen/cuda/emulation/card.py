"""The emulated GPU: memory, launches and reports of the runtime, by ctypes."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.cuda.emulation.build import runtime
from autosched.codegen.cuda.emulation.models import GroupModel
from autosched.codegen.cuda.emulation.signatures import IssueSignature
from autosched.codegen.cuda.launch import TensorMapEncoding

ALIGNMENT = 256
MAP_TAG, MAP_RANK = 0x7A6D, 5


class Index(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]

    def triple(self) -> tuple[int, int, int]:
        return self.x, self.y, self.z


class _Report(ctypes.Structure):
    _fields_ = [
        ("what", ctypes.c_char_p),
        ("detail", ctypes.c_char_p),
        ("other", ctypes.c_char_p),
        ("at", ctypes.c_uint32),
        ("other_at", ctypes.c_uint32),
        ("block", Index),
        ("thread", Index),
    ]


class _Map(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_uint64),
        ("extents", ctypes.c_uint64 * MAP_RANK),
        ("strides", ctypes.c_uint64 * MAP_RANK),
        ("box", ctypes.c_uint16 * MAP_RANK),
        ("rank", ctypes.c_uint8),
        ("swizzle_log", ctypes.c_uint8),
        ("tag", ctypes.c_uint16),
        ("lower", ctypes.c_int16 * (MAP_RANK - 2)),
        ("upper", ctypes.c_int16 * (MAP_RANK - 2)),
        ("steps", ctypes.c_uint16 * (MAP_RANK - 2)),
        ("walked", ctypes.c_uint16),
        ("unused", ctypes.c_uint16 * 3),
    ]


_Service = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)


@dataclass(frozen=True)
class Reported:
    """What the runtime says of the last launch."""

    what: str
    detail: str
    other: str
    at: int
    other_at: int
    block: tuple[int, int, int]
    thread: tuple[int, int, int]


def memory(size: int, fill: int) -> npt.NDArray[np.uint8]:
    """Bytes as `cudaMalloc` gives them, each of a value."""
    raw = np.full(size + ALIGNMENT, fill, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


class EmulatedCard:
    """One GPU; its state is the runtime's, so that there is one in a process (`card`)."""

    def __init__(self) -> None:
        self.library = library = ctypes.CDLL(str(runtime()), mode=ctypes.RTLD_GLOBAL)
        library.emulate_report.restype = _Report
        library.emulate_add_region.argtypes = [
            *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p),
            *(ctypes.c_int, ctypes.c_int),
        ]
        library.emulate_set_module.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_size_t]
        library.emulate_launch.argtypes = [
            *(ctypes.c_void_p, ctypes.c_void_p, Index, Index, Index, ctypes.c_size_t),
            *(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64),
        ]
        self.models: list[GroupModel] = []
        self.numbers: dict[object, int] = {}
        self.failure: BaseException | None = None
        self._service = _Service(self._serve)
        library.emulate_set_model(self._service)

    def _serve(self, number: int, address: int) -> None:
        try:
            self.models[number](address)
        except BaseException as error:  # ctypes would print it and go on
            self.failure = error

    def intrinsic(self, function: IssueSignature) -> int:
        """The number by which printed code issues it."""
        intrinsic = function.intrinsic
        key = intrinsic.name, intrinsic.version, intrinsic.numerics, tuple(function.kinds.items()), function.columns
        if key not in self.numbers:
            model = GroupModel(function)
            fields = [f for h in model.operands for f in h.fields]
            operands = (ctypes.c_uint32 * len(fields))(*fields)
            moved = (ctypes.c_uint32 * max(1, len(model.moved)))(*model.moved.tolist())
            self.numbers[key] = self.library.emulate_add_intrinsic(
                model.lanes, operands, len(model.operands), moved, len(model.moved)
            )
            self.models.append(model)
        return self.numbers[key]

    def enter(self, module: ctypes.CDLL) -> None:
        """Take a module's code, constants and static shared memory for the current ones; forget all arrays."""
        at = (ctypes.c_uint64 * 4)()
        module.emulate_module(at)
        first, last, shared, end = at
        self.library.emulate_reset()
        self.library.emulate_set_module(first, last, first, last, shared, end - shared)

    def array(self, name: str, data: npt.NDArray[np.uint8], *, written: bool, initialised: bool) -> None:
        """Let kernels reach some bytes. The caller keeps them."""
        self.library.emulate_add_region(data.ctypes.data, data.nbytes, name.encode(), written, initialised)

    def launch(
        self,
        kernel: Any,
        arguments: Sequence[bytes],
        shape: Sequence[tuple[int, int, int]],
        shared_bytes: int,
        seed: int,
        chosen: Sequence[int] | None,
    ) -> Reported | None:
        """Run a kernel; `shape` is its grid, block and cluster. None where all is well."""
        held = [ctypes.create_string_buffer(a, len(a) + 64) for a in arguments]
        places = [_aligned(h, a) for h, a in zip(held, arguments, strict=True)]
        pointers = (ctypes.c_void_p * max(1, len(held)))(*places)
        blocks = None if chosen is None else (ctypes.c_uint64 * len(chosen))(*chosen)
        grid, block, cluster = (Index(*s) for s in shape)
        self.failure = None
        wrong = self.library.emulate_launch(
            kernel, pointers, grid, block, cluster, shared_bytes, seed, blocks, 0 if chosen is None else len(chosen)
        )
        if self.failure is not None:
            raise self.failure
        if not wrong:
            return None
        r = self.library.emulate_report()
        what, detail, other = (field.decode() for field in (r.what, r.detail, r.other))
        return Reported(what, detail, other, r.at, r.other_at, r.block.triple(), r.thread.triple())


def _aligned(held: Any, data: bytes) -> int:
    """The bytes again, where a tensor map may lie: on 64 of them."""
    address = ctypes.addressof(held)
    place = address + -address % 64
    ctypes.memmove(place, data, len(data))
    return place


def encoded(tensor_map: TensorMapEncoding, base: int) -> bytes:
    """A tensor map as the runtime reads it."""
    rank = len(tensor_map.extents)
    element = tensor_map.dtype.bytes
    strides = tensor_map.strides
    if len(strides) < rank:
        strides = (element, *strides)
    swizzle = tensor_map.swizzle.bit_length() - 1 if tensor_map.swizzle else 0
    made = _Map(base, rank=rank, swizzle_log=swizzle, tag=MAP_TAG)
    for d in range(rank):
        made.extents[d], made.strides[d] = tensor_map.extents[d], strides[d]
    for d, side in enumerate(tensor_map.box):
        made.box[d] = side
    if walk := tensor_map.walk:
        made.walked = len(walk.steps)
        for d in range(len(walk.steps)):
            made.lower[d], made.upper[d], made.steps[d] = walk.lower[d], walk.upper[d], walk.steps[d]
    made.strides[0] = element
    return bytes(made)


@functools.cache
def card() -> EmulatedCard:
    """The process's GPU."""
    return EmulatedCard()


def load(path: Path) -> ctypes.CDLL:
    """A module of kernels. The runtime's symbols must be there first."""
    card()
    return ctypes.CDLL(str(path))
