"""The CUDA driver, through cuda-bindings: memory, modules, launches, graphs and events on one device. Standard library
and cuda-bindings only; nothing here knows of programs."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from autosched.device.cuda.call.maps import BYTES, Maps
from autosched.device.cuda.launch_job import Encoding, LaunchCall
from autosched.device.cuda.launcher import Launcher, Template, library
from autosched.errors import AutoschedError, MissingError

INSTALL = "pip install 'autosched[cuda]'"
NO_DRIVER = "no NVIDIA driver on this machine"
NO_GPU = "use -d simulator with -t nvidia-h200 or another target; autosched doctor says what is here"
LIMITS = {
    "cores": "MULTIPROCESSOR_COUNT",
    "warp_threads": "WARP_SIZE",
    "threads_per_block": "MAX_THREADS_PER_BLOCK",
    "threads_per_core": "MAX_THREADS_PER_MULTIPROCESSOR",
    "blocks_per_core": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "registers_per_core": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "shared_bytes": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "shared_bytes_per_core": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "shared_bytes_reserved_per_block": "RESERVED_SHARED_MEMORY_PER_BLOCK",
    "l2_bytes": "L2_CACHE_SIZE",
    "clock_khz": "CLOCK_RATE",
    "memory_clock_khz": "MEMORY_CLOCK_RATE",
    "memory_bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
}
"""Names of ours to attributes of the driver."""
_OTHER_CONTEXT = frozenset({3, 201, 400, 709})
"""Statuses of a launch where the thread's context is none, or another: NOT_INITIALIZED, INVALID_CONTEXT,
INVALID_HANDLE, CONTEXT_IS_DESTROYED."""
_DYNAMIC_BYTES = 48 << 10
"""Dynamic shared memory beyond this has to be asked for."""


class CudaError(AutoschedError):
    """The driver refused a call, or the device failed. `code` is the driver's name (`CUDA_ERROR_ILLEGAL_ADDRESS`)."""

    def __init__(self, code: str, doing: str) -> None:
        super().__init__(f"{code.removeprefix('CUDA_ERROR_').lower().replace('_', ' ')} ({code}) {doing}")
        self.code = code


def _has_driver() -> bool:
    try:
        library()
    except OSError:
        return False
    return True


def bindings(has_driver: Callable[[], bool] = _has_driver) -> Any:
    """The module `cuda.bindings.driver`. MissingError where it, or the driver, is not here."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        if not has_driver():  # installing cuda-bindings would not help
            raise MissingError(NO_DRIVER, hint=NO_GPU) from None
        raise MissingError(f"cuda-bindings is not here: {error}", hint=INSTALL) from None
    try:
        status = driver.cuInit(0)[0]
    except Exception as error:  # a class of its own for each way in which a library is not found
        raise MissingError(NO_DRIVER, hint=NO_GPU) from error
    if status != driver.CUresult.CUDA_SUCCESS:
        raise MissingError(f"no NVIDIA GPU that can be used: {status.name}", hint=NO_GPU)
    return driver


@dataclass(frozen=True)
class CardFacts:
    """A device as its driver describes it. `arch` is `sm_90`; `driver` is the CUDA version that the driver knows."""

    name: str
    arch: str
    driver: tuple[int, int]
    memory_bytes: int
    limits: Mapping[str, int]

    def described(self) -> dict[str, Any]:
        return {"gpu": self.name, "arch": self.arch, "driver": f"CUDA {self.driver[0]}.{self.driver[1]}"}


class Card:
    """One device, its primary context current on this thread, and a stream. Raises CudaError; MissingError where there
    is no driver or no such device."""

    def __init__(self, ordinal: int = 0) -> None:
        self.cu = bindings()
        count = self.do("counting devices", self.cu.cuDeviceGetCount)
        if ordinal >= count:
            raise MissingError(f"there is no CUDA device {ordinal}: {count} are here", hint=NO_GPU)
        self.device = self.do("", self.cu.cuDeviceGet, ordinal)
        self.context = self.do("taking the device", self.cu.cuDevicePrimaryCtxRetain, self.device)
        self.do("taking the device", self.cu.cuCtxSetCurrent, self.context)
        self.stream = self.do("", self.cu.cuStreamCreate, self.cu.CUstream_flags.CU_STREAM_NON_BLOCKING)
        self._own, self.alone = int(self.context), count == 1

    def do(self, doing: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the driver; what it returns beside its status. CudaError, which says `doing`."""
        status, *found = function(*arguments)
        if status != self.cu.CUresult.CUDA_SUCCESS:
            raise CudaError(status.name, doing)
        return found[0] if len(found) == 1 else found

    def facts(self) -> CardFacts:
        """What is known without running anything."""
        attributes = self.cu.CUdevice_attribute

        def attribute(name: str) -> int:
            key = getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(self.do("", self.cu.cuDeviceGetAttribute, key, self.device))

        limits = {name: attribute(of_driver) for name, of_driver in LIMITS.items()}
        name = self.do("", self.cu.cuDeviceGetName, 256, self.device).split(b"\0")[0].decode()
        arch = f"sm_{attribute('COMPUTE_CAPABILITY_MAJOR')}{attribute('COMPUTE_CAPABILITY_MINOR')}"
        version = self.do("", self.cu.cuDriverGetVersion)
        memory = self.do("", self.cu.cuDeviceTotalMem, self.device)
        return CardFacts(name, arch, (version // 1000, version % 1000 // 10), int(memory), limits)

    # Memory

    def allocate(self, size: int) -> int:
        """The address of `size` bytes, aligned to 256."""
        return int(self.do(f"allocating {size:,} bytes", self.cu.cuMemAlloc, max(size, 1)))

    def free(self, address: int) -> None:
        with contextlib.suppress(CudaError):  # of a context that a kernel has broken nothing can be freed
            self.do("freeing memory", self.cu.cuMemFree, address)

    def upload(self, address: int, data: Any) -> None:
        """Copy a contiguous numpy array to the device."""
        if data.nbytes:
            self.do("copying to the device", self.cu.cuMemcpyHtoD, address, data.ctypes.data, data.nbytes)

    def download(self, data: Any, address: int) -> None:
        """Fill a contiguous numpy array from the device."""
        if data.nbytes:
            self.do("copying from the device", self.cu.cuMemcpyDtoH, data.ctypes.data, address, data.nbytes)

    def copy(self, to: int, source: int, size: int) -> None:
        if size:
            self.do("copying", self.cu.cuMemcpyDtoDAsync, to, source, size, self.stream)

    def fill(self, address: int, byte: int, size: int) -> None:
        if size:
            self.do("filling", self.cu.cuMemsetD8Async, address, byte, size, self.stream)

    # Kernels

    def load(self, code: bytes) -> Any:
        return self.do("loading the code", self.cu.cuModuleLoadData, code)

    def unload(self, module: Any) -> None:
        with contextlib.suppress(CudaError):
            self.do("unloading", self.cu.cuModuleUnload, module)

    def function(self, module: Any, call: LaunchCall) -> Any:
        """A kernel of the module, allowed the dynamic shared memory that the call asks for."""
        found = self.do(f"looking for {call.kernel}", self.cu.cuModuleGetFunction, module, call.kernel.encode())
        attributes = self.cu.CUfunction_attribute
        if call.shared_bytes > _DYNAMIC_BYTES:
            key = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            doing = f"asking for {call.shared_bytes:,} bytes of shared memory for {call.kernel}"
            self.do(doing, self.cu.cuFuncSetAttribute, found, key, call.shared_bytes)
        return found

    def encode(self, encoding: Encoding, address: int, to: int) -> None:
        """Write a tensor map of the array at `address` to this process's memory."""
        cu, rank = self.cu, len(encoding.extents)
        swizzle = "NONE" if not encoding.swizzle else f"{encoding.swizzle}B"
        shape: tuple[Any, ...]
        encode, shape = cu.cuTensorMapEncodeTiled, ([cu.cuuint32_t(n) for n in encoding.box],)
        steps: tuple[int, ...] = (1,) * rank
        if encoding.walk is not None:
            lower, upper, walked = encoding.walk
            encode, shape = cu.cuTensorMapEncodeIm2col, (list(lower), list(upper), *encoding.box)
            steps = (1, *walked, 1)
        made = self.do(
            f"encoding the tensor map of {encoding.buffer}",
            encode,
            getattr(cu.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{encoding.element}"),
            rank,
            address,
            [cu.cuuint64_t(n) for n in encoding.extents],
            [cu.cuuint64_t(n) for n in encoding.strides],
            *shape,
            [cu.cuuint32_t(n) for n in steps],
            cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(cu.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
            cu.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        ctypes.memmove(to, int(made.getPtr()), BYTES)

    def move(self, to: int, address: int) -> None:
        """Put another address into a tensor map."""
        status = library().cuTensorMapReplaceAddress(to, address)
        if status in _OTHER_CONTEXT:
            with self.current():
                status = library().cuTensorMapReplaceAddress(to, address)
        if status:
            raise self.failed(status, "moving a tensor map")

    def maps(self, encodings: Mapping[str, Encoding]) -> Maps:
        """The tensor maps of a kernel; each is encoded when a launch first asks for it."""
        return Maps(self, encodings)

    def template(self, module: Any, call: LaunchCall) -> Template:
        """A launch of the module's kernel, on this GPU's own stream where none is named."""
        return Template(int(self.function(module, call)), call, int(self.stream), self.failed)

    def failed(self, status: int, doing: str) -> CudaError:
        """The error of a status that the driver's C interface gave."""
        return CudaError(self.cu.CUresult(status).name, doing)

    def issue(self, launchers: Sequence[Launcher]) -> None:
        """Issue launches, in order, from any thread; its current context is as before afterwards.

        With one device the driver is left to say that the context is another: to ask it each time takes longer than all
        the rest of a call. With several, whose streams have the same handles, it is asked.
        """
        if self.alone or self._current() == self._own:
            first = True
            for launch in launchers:
                if status := launch.run():
                    if not (first and status in _OTHER_CONTEXT and self._current() != self._own):
                        raise launch.error(status)
                    break
                first = False
            else:
                return
        self.do("using the device", self.cu.cuCtxPushCurrent, self.context)
        try:
            for launch in launchers:
                launch()
        finally:
            self.cu.cuCtxPopCurrent()

    @staticmethod
    def _current() -> int | None:
        """The calling thread's context."""
        current = ctypes.c_void_p()
        library().cuCtxGetCurrent(ctypes.addressof(current))
        return current.value

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """This device's context on this thread, inside: for memory and code, which may also be had while a stream of
        others is being recorded as a graph."""
        cu = self.cu
        self.do("using the device", cu.cuCtxPushCurrent, self.context)
        mode = self.do("", cu.cuThreadExchangeStreamCaptureMode, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        try:
            yield
        finally:
            cu.cuThreadExchangeStreamCaptureMode(mode)
            cu.cuCtxPopCurrent()

    def recording(self, stream: int) -> int:
        """Which graph is being recorded on a stream, as a number; 0 for none."""
        status, number = ctypes.c_int(), ctypes.c_uint64()
        given = ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number), None, None, None
        found = library().cuStreamGetCaptureInfo_v2(*given)
        if found in _OTHER_CONTEXT:
            with self.current():
                found = library().cuStreamGetCaptureInfo_v2(*given)
        if found:
            raise self.failed(found, "asking for what is recorded")
        return number.value if status.value else 0

    def ordinal_of(self, address: int) -> int | None:
        """The device whose memory an address is in; None for other memory."""
        cu = self.cu
        key = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        status, ordinal = cu.cuPointerGetAttribute(key, address)
        return int(ordinal) if status == cu.CUresult.CUDA_SUCCESS else None

    # Time

    def wait(self, doing: str = "", stream: int | None = None) -> None:
        """Until all that was issued on a stream, by default this GPU's own, is done."""
        self.do(doing, self.cu.cuStreamSynchronize, self.stream if stream is None else stream)

    @contextlib.contextmanager
    def captured(self) -> Iterator[list[Any]]:
        """Record what is issued inside as a graph instead of running it; the list then holds it, executable."""
        mode = self.cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        made: list[Any] = []
        self.do("recording", self.cu.cuStreamBeginCapture, self.stream, mode)
        try:
            yield made
        finally:
            graph = self.do("recording", self.cu.cuStreamEndCapture, self.stream)
        made.append(self.do("recording", self.cu.cuGraphInstantiate, graph, 0))
        self.do("recording", self.cu.cuGraphDestroy, graph)

    def replay(self, graph: Any) -> None:
        self.do("launching", self.cu.cuGraphLaunch, graph, self.stream)

    def discard(self, graph: Any) -> None:
        with contextlib.suppress(CudaError):
            self.do("discarding", self.cu.cuGraphExecDestroy, graph)

    def timed(self, issue: Callable[[], None]) -> float:
        """Seconds that the device takes for what `issue` issues, by events."""
        events = [self.do("", self.cu.cuEventCreate, 0) for _ in range(2)]
        try:
            self.do("", self.cu.cuEventRecord, events[0], self.stream)
            issue()
            self.do("", self.cu.cuEventRecord, events[1], self.stream)
            self.do("running", self.cu.cuEventSynchronize, events[1])
            return float(self.do("", self.cu.cuEventElapsedTime, *events)) * 1e-3
        finally:
            for event in events:
                self.cu.cuEventDestroy(event)


@cache
def shared_card(ordinal: int) -> Card:
    """The one GPU of that number that callables of this process use; the calling thread's context stays as it is. As
    `Card` raises."""
    cu = bindings()
    before = cu.cuCtxGetCurrent()[1]
    relaxed = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    mode = cu.cuThreadExchangeStreamCaptureMode(relaxed)[1]  # the caller may be recording a graph
    try:
        return Card(ordinal)
    finally:
        cu.cuThreadExchangeStreamCaptureMode(mode)
        cu.cuCtxSetCurrent(before)
