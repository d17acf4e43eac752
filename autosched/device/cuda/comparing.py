"""`Comparer`: outputs against what they must be, on the GPU, where both lie: a few hundred microseconds for what a
download alone takes a hundred times.

It says how many elements are past their tolerance, by the rules of `device.correctness.compare`, and which of the
others came nearest to it. Where any is wrong the host compares once more, and says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.device.cpu.data import numpy_dtype
from autosched.device.cuda.driver import Card
from autosched.device.cuda.launch_job import LaunchCall, Mapped, Pointer, Value

DOUBLES, ELEMENTS, BITS = 0, 1, 2
"""How what is wanted lies there: as doubles, as elements of the output's type, or as such whose bits must be equal."""
THREADS, MOST_BLOCKS = 256, 2048
Argument = Pointer | Value | Mapped
KINDS = {"float32": 2, "float64": 3, "int32": 4, "uint32": 5, "int64": 6, "uint64": 7}
"""What the text below calls types of four and eight bytes; the values of smaller ones are looked up (0 and 1)."""
TEXT = r"""// Compares an output with what is wanted, element by element. No thread waits for another: atomic operations
// keep the counts, the largest share of a tolerance and, in a second pass, the first element with that share.
typedef unsigned long long u64;

__device__ double value(const void *data, u64 at, int kind, const double *table) {
    switch (kind) {
    case 0: return table[((const unsigned char *)data)[at]];
    case 1: return table[((const unsigned short *)data)[at]];
    case 2: return ((const float *)data)[at];
    case 3: return ((const double *)data)[at];
    case 4: return ((const int *)data)[at];
    case 5: return ((const unsigned *)data)[at];
    case 6: return (double)((const long long *)data)[at];
    default: return (double)((const u64 *)data)[at];
    }
}

__device__ u64 bits(const void *data, u64 at, int size) {
    switch (size) {
    case 1: return ((const unsigned char *)data)[at];
    case 2: return ((const unsigned short *)data)[at];
    case 4: return ((const unsigned *)data)[at];
    default: return ((const u64 *)data)[at];
    }
}

// found: elements past their tolerance, the largest share of a tolerance (as bits), the first element that has it.
// places (0: in order) says which elements of the output are compared; tolerances (0: room) what each may be off.
extern "C" __global__ void compare(const void *got, const u64 *places, const void *want, const double *tolerances,
                                   const double *table, u64 *found, u64 count, double room, int kind, int size, int how,
                                   int pass) {
    u64 wrong = 0;
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const u64 at = places ? places[i] : i;
        double share = 0;
        if (how == 2) {
            wrong += bits(got, at, size) != bits(want, i, size);
        } else {
            const double g = value(got, at, kind, table);
            const double w = how == 0 ? ((const double *)want)[i] : value(want, i, kind, table);
            if (!(g == w || (g != g && w != w))) {
                const double allowed = tolerances ? tolerances[i] : room;
                const double error = g > w ? g - w : w - g;
                if (!(error <= allowed) || error - allowed != error - allowed)
                    ++wrong;
                else if (allowed > 0)
                    share = error / allowed;
            }
        }
        const u64 as_bits = __double_as_longlong(share);
        if (pass == 0 && as_bits > found[1]) atomicMax(found + 1, as_bits);
        if (pass == 1 && as_bits == found[1] && i < found[2]) atomicMin(found + 2, i);
    }
    if (pass == 0 && wrong) atomicAdd(found, wrong);
}
"""


@dataclass(frozen=True)
class Wanted:
    """What is compared with, on the GPU: addresses (0: none) of what is wanted, of tolerances, and of the places in
    the output; without tolerances each element may be off by `room`."""

    count: int
    how: int
    want: int
    tolerances: int = 0
    places: int = 0
    room: float = 0.0


@dataclass(frozen=True)
class MismatchCount:
    """How many elements are wrong; and, where none is, the number of the one nearest to its tolerance."""

    wrong: int
    nearest: int


class Comparer:
    """`code` is the machine code of `TEXT`. CudaError where the GPU refuses it."""

    def __init__(self, card: Card, code: bytes) -> None:
        self.card = card
        self._owned: list[int] = []
        self._tables: dict[str, int] = {}
        self._module = card.load(code)
        self._maps = card.maps({})
        self._found = self._allocate(24)

    def put(self, values: npt.NDArray[Any]) -> int:
        """The address of a copy on the GPU, for as long as this is open. CudaError where there is no room."""
        address = self._allocate(values.nbytes)
        self.card.upload(address, np.ascontiguousarray(values))
        self.card.wait("copying to the device", 0)
        return address

    def __call__(self, got: int, dtype: str, wanted: Wanted) -> MismatchCount:
        """Compare the output at the address `got`, of numpy's type."""
        kind, size, table = self._kind(dtype)
        self.card.fill(self._found, 0, 16)
        self.card.fill(self._found + 16, 0xFF, 8)
        addresses = {
            "got": got,
            "places": wanted.places,
            "want": wanted.want,
            "tolerances": wanted.tolerances,
            "table": table,
            "found": self._found,
        }
        numbers = (kind, size, wanted.how)
        values: list[Any] = [np.uint64(wanted.count), np.float64(wanted.room), *map(np.int32, numbers)]
        first: list[Argument] = [*map(Pointer, addresses), *(Value(v.tobytes()) for v in values)]
        blocks = min(MOST_BLOCKS, -(-wanted.count // THREADS))
        for number in (0, 1):
            which = Value(np.int32(number).tobytes())
            call = LaunchCall("compare", (blocks, 1, 1), (THREADS, 1, 1), 0, (*first, which))
            self.card.template(self._module, call).at(addresses, self._maps)()
        self.card.wait("comparing")
        found = np.empty(3, np.uint64)
        self.card.download(found, self._found)
        return MismatchCount(int(found[0]), int(found[2]))

    def close(self) -> None:
        """Free what was put there."""
        for address in self._owned:
            self.card.free(address)
        self._owned, self._tables = [], {}
        self.card.unload(self._module)

    def _kind(self, dtype: str) -> tuple[int, int, int]:
        """The type's number, an element's bytes, and the address of the values of its patterns where it is small."""
        found = numpy_dtype(dtype)
        if found.itemsize > 2:
            return KINDS[found.name], found.itemsize, 0
        if dtype not in self._tables:
            patterns = np.arange(1 << 8 * found.itemsize, dtype=np.uint64).astype(f"u{found.itemsize}")
            with np.errstate(invalid="ignore"):
                self._tables[dtype] = self.put(patterns.view(found).astype(np.float64))
        return found.itemsize - 1, found.itemsize, self._tables[dtype]

    def _allocate(self, size: int) -> int:
        self._owned.append(self.card.allocate(size))
        return self._owned[-1]
