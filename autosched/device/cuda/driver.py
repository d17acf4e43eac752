"""The CUDA driver, through cuda-bindings: memory, modules, launches, graphs and events on one device. Standard library
and cuda-bindings only; nothing here knows of programs."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autosched.device.cuda.job import Call, Encoding, Mapped, Pointer, Value
from autosched.errors import AutoschedError, MissingError, UsageError

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
_DYNAMIC_BYTES = 48 << 10
"""Dynamic shared memory beyond this has to be asked for."""


class CudaError(AutoschedError):
    """The driver refused a call, or the device failed. `code` is the driver's name (`CUDA_ERROR_ILLEGAL_ADDRESS`)."""

    def __init__(self, code: str, doing: str) -> None:
        super().__init__(f"{code.removeprefix('CUDA_ERROR_').lower().replace('_', ' ')} ({code}) {doing}")
        self.code = code


def bindings() -> Any:
    """The module `cuda.bindings.driver`. MissingError where it, or the driver, is not here."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        if not _has_driver():  # what to install would help nobody here
            raise MissingError(NO_DRIVER, hint=NO_GPU) from None
        raise MissingError(f"cuda-bindings is not here: {error}", hint=INSTALL) from None
    try:
        status = driver.cuInit(0)[0]
    except Exception as error:  # a class of its own for each way in which a library is not found
        raise MissingError(NO_DRIVER, hint=NO_GPU) from error
    if status != driver.CUresult.CUDA_SUCCESS:
        raise MissingError(f"no NVIDIA GPU that can be used: {status.name}", hint=NO_GPU)
    return driver


def _has_driver() -> bool:
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


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
        context = self.do("taking the device", self.cu.cuDevicePrimaryCtxRetain, self.device)
        self.do("taking the device", self.cu.cuCtxSetCurrent, context)
        self.stream = self.do("", self.cu.cuStreamCreate, self.cu.CUstream_flags.CU_STREAM_NON_BLOCKING)

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

    def function(self, module: Any, call: Call) -> Any:
        """A kernel of the module, allowed the dynamic shared memory that the call asks for."""
        found = self.do(f"looking for {call.kernel}", self.cu.cuModuleGetFunction, module, call.kernel.encode())
        attributes = self.cu.CUfunction_attribute
        if call.shared_bytes > _DYNAMIC_BYTES:
            key = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            doing = f"asking for {call.shared_bytes:,} bytes of shared memory for {call.kernel}"
            self.do(doing, self.cu.cuFuncSetAttribute, found, key, call.shared_bytes)
        return found

    def encode(self, encoding: Encoding, address: int) -> Any:
        """A tensor map of the array at `address`."""
        cu, rank = self.cu, len(encoding.extents)
        swizzle = "NONE" if not encoding.swizzle else f"{encoding.swizzle}B"
        shape: tuple[Any, ...]
        encode, shape = cu.cuTensorMapEncodeTiled, ([cu.cuuint32_t(n) for n in encoding.box],)
        steps: tuple[int, ...] = (1,) * rank
        if encoding.walk is not None:
            lower, upper, walked = encoding.walk
            encode, shape = cu.cuTensorMapEncodeIm2col, (list(lower), list(upper), *encoding.box)
            steps = (1, *walked, 1)
        return self.do(
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

    def launcher(self, module: Any, call: Call, addresses: Mapping[str, int], maps: Mapping[str, Encoding]) -> Launcher:
        """The call with its arguments, ready to be issued any number of times."""
        return Launcher(self, self.function(module, call), call, addresses, maps)

    def require_own(self, address: int, name: str) -> None:
        """UsageError where the array `name` at `address` is not in this device's memory."""
        cu = self.cu
        key = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        status, ordinal = cu.cuPointerGetAttribute(key, address)
        own = int(self.device)
        if status != cu.CUresult.CUDA_SUCCESS:
            hint = "pass a numpy array, or one on the card"
            raise UsageError(f"{name} is not in the memory of a CUDA device", hint=hint)
        if int(ordinal) != own:
            hint = f"move it there, as x.to('cuda:{own}') in PyTorch"
            raise UsageError(f"{name} is on CUDA device {int(ordinal)}, and the kernel runs on device {own}", hint=hint)

    # Time

    def settle(self) -> None:
        """Wait for everything on the device: others' streams may still be filling arrays."""
        self.do("waiting", self.cu.cuCtxSynchronize)

    def wait(self, doing: str = "") -> None:
        self.do(doing, self.cu.cuStreamSynchronize, self.stream)

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


class Launcher:
    """One launch with fixed arguments."""

    def __init__(
        self, card: Card, function: Any, call: Call, addresses: Mapping[str, int], maps: Mapping[str, Encoding]
    ) -> None:
        cu = card.cu
        self.card, self.function, self.kernel = card, function, call.kernel
        self._values: list[Any] = []
        places = []
        for argument in call.arguments:
            match argument:
                case Pointer(name):
                    held: Any = ctypes.c_uint64(addresses[name])
                    places.append(ctypes.addressof(held))
                case Value(data):
                    held = ctypes.create_string_buffer(data, len(data))
                    places.append(ctypes.addressof(held))
                case Mapped(name):
                    held = card.encode(maps[name], addresses[maps[name].buffer])
                    places.append(int(held.getPtr()))
            self._values.append(held)
        self._places = (ctypes.c_void_p * max(1, len(places)))(*places)
        config = cu.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = call.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = call.block
        config.sharedMemBytes, config.hStream = call.shared_bytes, card.stream
        if call.cluster != (1, 1, 1):
            attribute = cu.CUlaunchAttribute()
            attribute.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            shape = attribute.value.clusterDim
            shape.x, shape.y, shape.z = call.cluster
            config.attrs, config.numAttrs = [attribute], 1
        self._config = config

    def __call__(self) -> None:
        cu = self.card.cu
        places = ctypes.addressof(self._places)
        status = cu.cuLaunchKernelEx(self._config, self.function, places, 0)[0]
        if status != cu.CUresult.CUDA_SUCCESS:
            raise CudaError(status.name, f"launching {self.kernel}")
