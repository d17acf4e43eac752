"""A card made of host memory: kernels are Python functions, by name. What `device.cuda.driver.Card` does for a GPU, so
that everything above the driver runs where there is none."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from autosched.device.correctness.sampled import Sampled, sampled
from autosched.device.cuda.call.maps import Maps
from autosched.device.cuda.driver import CardFacts, CudaError
from autosched.device.cuda.launch_job import Box, Encoding, LaunchCall, Mapped, Pointer, Value
from autosched.ir.oracle.tolerances import run_with_error
from autosched.ir.program import Program

FACTS = CardFacts(
    "NVIDIA H200", "sm_90", (13, 0), 1 << 30, {"l2_bytes": 1 << 16, "shared_bytes": 232448, "threads_per_block": 1024}
)


class HostCard:
    """`kernels` take addresses and scalars' bytes, in order. `fail` holds driver errors by kernel."""

    def __init__(self, kernels: Mapping[str, Callable[..., None]], fail: Mapping[str, str] | None = None) -> None:
        self.kernels, self.fail = dict(kernels), dict(fail or {})
        self.memory: dict[int, Any] = {}
        self.clock_s = 0.0
        self.launched: list[str] = []
        self.streams: list[int] = []
        self.encoded: list[int] = []
        self.alone = True
        self.waits, self.loads, self.graph, self.ordinal, self.stream = 0, 0, 0, 0, 7
        self._recording: list[Callable[[], None]] | None = None

    def facts(self) -> CardFacts:
        return FACTS

    def allocate(self, size: int) -> int:
        held = np.zeros(size + 256, np.uint8)
        address = -(-held.ctypes.data // 256) * 256
        self.memory[address] = held
        return address

    def free(self, address: int) -> None:
        del self.memory[address]

    def upload(self, address: int, data: Any) -> None:
        ctypes.memmove(address, data.ctypes.data, data.nbytes)

    def download(self, data: Any, address: int) -> None:
        ctypes.memmove(data.ctypes.data, address, data.nbytes)

    def copy(self, to: int, source: int, size: int) -> None:
        ctypes.memmove(to, source, size)

    def fill(self, address: int, byte: int, size: int) -> None:
        ctypes.memset(address, byte, size)

    def load(self, code: bytes) -> bytes:
        if code == b"bad":
            raise CudaError("CUDA_ERROR_INVALID_IMAGE", "loading the code")
        self.loads += 1
        return code

    def unload(self, module: bytes) -> None:
        pass

    def template(self, module: bytes, call: LaunchCall) -> Template:
        return Template(self, call)

    def maps(self, encodings: Mapping[str, Encoding]) -> Maps:
        return Maps(self, encodings)

    def encode(self, encoding: Encoding, address: int, to: int) -> None:
        """As a map: the address, then zeros."""
        self.encoded.append(address)
        self.move(to, address)

    def move(self, to: int, address: int) -> None:
        ctypes.c_uint64.from_address(to).value = address

    def issue(self, launchers: Iterable[Callable[[], None]]) -> None:
        for launch in launchers:
            launch()

    def current(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def recording(self, stream: int) -> int:
        return self.graph

    def ordinal_of(self, address: int) -> int | None:
        inside = any(base <= address < base + len(held) for base, held in self.memory.items())
        return self.ordinal if inside else None

    def wait(self, doing: str = "", stream: int | None = None) -> None:
        self.waits += 1

    @contextlib.contextmanager
    def captured(self) -> Any:
        made: list[Any] = []
        self._recording = []
        try:
            yield made
        finally:
            made.append(self._recording)
            self._recording = None

    def replay(self, graph: list[Callable[[], None]]) -> None:
        for run in graph:
            run()

    def discard(self, graph: Any) -> None:
        pass

    def timed(self, issue: Callable[[], None]) -> float:
        before = self.clock_s
        issue()
        return self.clock_s - before


class Template:
    """As `device.cuda.launcher.Template`."""

    def __init__(self, card: HostCard, call: LaunchCall) -> None:
        self.card, self.call = card, call

    def at(self, addresses: Mapping[str, int], maps: Maps, stream: int | None = None) -> Callable[[], None]:
        card, call = self.card, self.call
        values: list[Any] = []
        for argument in call.arguments:
            match argument:
                case Pointer(name):
                    values.append(addresses[name])
                case Value(data):
                    values.append(data)
                case Mapped(name):
                    values.append(maps.at(name, addresses[maps.buffer(name)]))

        def run() -> None:
            if call.kernel in card.fail:
                raise CudaError(card.fail[call.kernel], f"launching {call.kernel}")
            card.launched.append(call.kernel)
            card.streams.append(card.stream if stream is None else stream)
            card.clock_s += 1e-5
            card.kernels[call.kernel](*values)

        def issue() -> None:
            if card._recording is None:
                run()
            else:
                card._recording.append(run)

        def quietly() -> int:
            issue()
            return 0

        issue.run = quietly  # type: ignore[attr-defined]
        return issue


def array(address: int, count: int, dtype: Any) -> Any:
    """So many elements of this card's memory."""
    size = count * np.dtype(dtype).itemsize
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)).view(dtype)


def boxed(program: Program, **given: Any) -> tuple[Sampled, str, Any]:
    """What is sampled of a program with one output, that output's name, and all of it as the interpreter says."""
    found = sampled(program, 0)
    inputs = found.oracle.inputs | given
    wants, _ = run_with_error(program, inputs, found.oracle.scalars, {s.name for s in program.stages})
    (name,) = found.boxes
    return found, name, np.ascontiguousarray(wants[name])


def unsampled(whole: Any, boxes: Iterable[Box]) -> tuple[int, ...]:
    """The index of an element that no box holds."""
    inside = np.zeros(whole.shape, bool)
    for box in boxes:
        inside[tuple(slice(low, low + n) for low, n in box)] = True
    return tuple(int(i) for i in np.unravel_index(np.argmin(inside), whole.shape))
