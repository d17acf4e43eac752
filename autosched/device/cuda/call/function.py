"""`CudaFunction`: loaded launches as a function of arrays, which adds a few microseconds to what the GPU does.

Arrays that are on a GPU are used where they are: the launches go to the stream that is current in their library
(PyTorch, CuPy; see `libraries`), and nothing is waited for, so a call can be recorded in a CUDA graph. A call with a
numpy array copies and waits.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from autosched.device.cuda.call.arrays import ALIGNMENT, Argument, in_host, on_card, refuse_overlap, size_of
from autosched.device.cuda.call.libraries import Library, Quick, Reader, library_of
from autosched.device.cuda.call.loaded import LoadedLaunches
from autosched.device.cuda.driver import Card
from autosched.errors import UsageError
from autosched.ir.arguments import GivenScalar, given_by_name
from autosched.ir.data import require_data
from autosched.ir.program import Program

_LEFT_OUT = object()


class CudaFunction:
    """A kernel as a function of `parameters`, in order or by name, run-time scalars among them.

    Pure outputs may be left out: they are new arrays of the library that the first array is of, if it makes any.
    Answers the output, a tuple of several. Code, memory and tensor maps are kept for each device, and go when this
    does: a CUDA graph that was recorded of it must not be run after that. Threads may call at once.

    UsageError for arrays of another type, shape or layout, on another device than the first, misaligned or overlapping,
    and for arrays of two libraries whose current streams differ. What goes wrong on the GPU is said by whoever waits
    for it. Host arrays go to the GPU number `ordinal`; `cards` opens the GPU of a number.
    """

    def __init__(self, program: Program, parameters: Sequence[str], ordinal: int, cards: Callable[[int], Card]) -> None:
        self.program, self.parameters, self.ordinal, self.cards = program, tuple(parameters), ordinal, cards
        self._lock = threading.Lock()
        self._tensors = tuple(program.tensors[n] for n in parameters if n in program.tensors)
        self._scalars = [_bytes_of(GivenScalar.of(program, n)) for n in parameters if n in program.scalars]
        names = [t.name for t in self._tensors]
        self._order = [*names, *(n for n in parameters if n in program.scalars)]
        self._straight = self._order == list(parameters)
        self._many = len(parameters) if self._straight else -1
        self._outputs = tuple(names.index(n) for n in program.outputs)
        self._one = self._outputs[0] if len(self._outputs) == 1 else None
        self._free = frozenset(n for n in program.outputs if n not in program.inputs)
        self._lead = next((i for i, n in enumerate(names) if n not in self._free), 0)
        self._libraries: dict[type, Library | None] = {}
        self._hot: tuple[
            Callable[[int], int], Callable[[Sequence[Any]], list[Any] | None], int, LoadedLaunches
        ] | None = None
        """The quick way of the last call that was not quick: its device's. Addresses say which device they are of."""
        self._readers: list[dict[type, Reader]] = [{} for _ in names]
        self._on: dict[int, LoadedLaunches] = {}
        sizes = [size_of(t) for t in self._tensors]
        apart = [(o, i) for o in self._outputs for i in range(len(names)) if i != o]
        self._apart = [(o, i, sizes[o], sizes[i]) for o, i in apart]

    def __call__(self, /, *arrays: Any, **named: Any) -> Any:
        if self._hot is not None and len(arrays) == self._many and not named:
            stream, addresses, ordinal, loaded = self._hot
            found = addresses(arrays)
            if found is not None:
                if self._scalars:
                    found += self._passed(arrays[len(self._tensors) :])
                call = (stream(ordinal), *found)
                launches = loaded.known.get(call)
                if launches is not None:
                    if not loaded.direct:
                        loaded(call)
                    else:
                        for launch in launches:
                            if status := launch.run():
                                if launch is not launches[0]:
                                    raise launch.error(status)
                                loaded(call)  # the context is another, or it says what is wrong
                                break
                    return self._answer(arrays) if self._one is None else arrays[self._one]
                if self._lie_well(arrays, found, ordinal):
                    self._refuse_overlap(call)
                    loaded(call)
                    return self._answer(arrays)
        return self._slowly(arrays, named)

    def _lie_well(self, arrays: Sequence[Any], addresses: Sequence[Any], ordinal: int) -> bool:
        """Whether arrays of the quick way, at addresses that no call had before, are on the device and aligned."""
        library, count = self._libraries.get(type(arrays[self._lead])), len(self._tensors)
        if library is None or any(address % ALIGNMENT for address in addresses[:count]):
            return False
        return all(library.device(array) == ordinal for array in arrays[:count])

    def _slowly(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """A call with arrays of any library, or in host memory."""
        values: Sequence[Any] = arrays if len(arrays) == self._many and not named else self._bind(arrays, named)
        lead = values[self._lead]
        library = self._libraries.get(type(lead)) or self._library(lead)
        if library is None or (ordinal := library.device(lead)) is None:
            return self._copied(values)
        loaded = self._on.get(ordinal) or self._loaded(ordinal)
        stream = library.stream(lead, ordinal)
        key: list[Any] = [stream or 0]
        count = len(self._tensors)
        for number, value in enumerate(values[:count]):
            kind = type(value)
            if value is _LEFT_OUT:
                value = library.empty(self._tensors[number], ordinal)
                kind = type(value)
                values = [*values[:number], value, *values[number + 1 :]]
            read = self._readers[number].get(kind)
            if read is None:
                if self._library(value) is None:
                    return self._copied(values)
                read = self._reader(number, value)
            if kind is not type(lead):
                self._same_stream(number, value, ordinal, library, stream)
            key.append(read(value, ordinal) or self._argument(number, value, ordinal).address)
        if self._scalars:
            key += self._passed(values[count:])
        call = tuple(key)
        if call not in loaded.known:
            self._refuse_overlap(call)
        loaded(call)
        if self._hot is None or self._hot[3] is not loaded or self._hot[1](values) is None:
            quick = self._quick(library, values[:count])
            self._hot = None if quick is None else (quick.stream, quick.addresses, ordinal, loaded)
        return self._answer(values)

    # Arrays and what is known of them

    def _bind(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        """The values, tensors first; `_LEFT_OUT` for outputs that were left out."""
        given = given_by_name(self.program, self.parameters, arrays, named)
        return [given.get(n, _LEFT_OUT) for n in self._order]

    def _library(self, array: Any) -> Library | None:
        """The library of an array, None for one in host memory."""
        kind = type(array)
        if kind not in self._libraries:
            found = library_of(array, lambda address: self.cards(self.ordinal).ordinal_of(address))
            same = next((k for k in self._libraries.values() if type(k) is type(found)), found)
            self._libraries[kind] = same
        return self._libraries[kind]

    def _quick(self, library: Library, arrays: Sequence[Any]) -> Quick | None:
        """The quick way for calls with such arrays, where all are of one library that has one."""
        if any(self._library(a) is not library for a in arrays):
            return None
        return library.quick(self._tensors, arrays)

    def _reader(self, number: int, array: Any) -> Reader:
        library, tensor = self._library(array), self._tensors[number]
        assert library is not None
        self._readers[number][type(array)] = found = library.reader(tensor, tensor.name in self.program.written)
        return found

    def _argument(self, number: int, array: Any, ordinal: int) -> Argument:
        """A checked array, on the device of that number or in host memory."""
        tensor, library = self._tensors[number], self._library(array)
        written = tensor.name in self.program.written
        if library is None:
            return in_host(tensor, array, written)
        return on_card(tensor, library.described(tensor, array), written, ordinal)

    def _same_stream(self, number: int, array: Any, ordinal: int, library: Library, stream: int | None) -> None:
        """UsageError where an array of another library than the first is worked on in another stream."""
        other = self._library(array)
        if other is None or other is library:
            return
        theirs = other.stream(array, ordinal)
        if None not in (stream, theirs) and stream != theirs:
            name, first = self._tensors[number].name, self._tensors[self._lead].name
            said = f"{name} is of {other.name} and {first} of {library.name}, whose current streams differ"
            raise UsageError(said, hint="make one of them current in both")

    def _refuse_overlap(self, call: tuple[Any, ...]) -> None:
        """UsageError where an output shares memory with another array of a call, or of all."""
        addresses = call[1:]
        for o, i, own, others in self._apart:
            if addresses[o] < addresses[i] + others and addresses[i] < addresses[o] + own:
                break
        else:
            if not self.bound():
                return
        found = [Argument(t.name, size_of(t), a) for t, a in zip(self._tensors, addresses, strict=False)]
        refuse_overlap(self.program.outputs, {a.name: a for a in (*found, *self.bound())})

    def _passed(self, scalars: Sequence[Any]) -> list[bytes]:
        """Run-time scalars as the launches take them. UsageError for what is no such number."""
        return [passed(given) for passed, given in zip(self._scalars, scalars, strict=True)]

    def load_on(self, card: Card) -> LoadedLaunches:
        """The code on a GPU. UsageError where it cannot be there."""
        raise NotImplementedError

    def bound(self) -> Sequence[Argument]:
        """Arrays that every call has beside its own."""
        return ()

    def _answer(self, values: Sequence[Any]) -> Any:
        outputs = tuple(values[i] for i in self._outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _loaded(self, ordinal: int) -> LoadedLaunches:
        """The code on a device, loaded at the first call there."""
        with self._lock:
            if ordinal not in self._on:
                self._on[ordinal] = self.load_on(self.cards(ordinal))
            return self._on[ordinal]

    # Arrays in host memory

    def _copied(self, values: Sequence[Any]) -> Any:
        """A call with arrays in host memory: they go to the GPU of the others, or to this function's own, and back."""
        program, tensors = self.program, self._tensors
        values = list(values)
        scalars = self._passed(values[len(tensors) :])
        ordinal, stream = self.place(values[: len(tensors)])
        for number, tensor in enumerate(tensors):
            if values[number] is _LEFT_OUT:
                if stream is not None:
                    raise UsageError(
                        f"no array for {tensor.name}", hint="with arrays on the GPU, pass each output too"
                    )
                values[number] = np.zeros(tensor.extents, tensor.dtype.numpy)
        arguments = [self._argument(i, values[i], ordinal) for i in range(len(tensors))]
        refuse_overlap(program.outputs, {a.name: a for a in (*arguments, *self.bound())})
        require_data(program, {a.name: a.host for a in arguments if a.host is not None})
        loaded = self._loaded(ordinal)
        card, owned = loaded.card, []
        on = int(card.stream) if stream is None else stream
        try:
            key: list[Any] = [on]
            with card.current():
                for argument in arguments:
                    if argument.address is None:
                        owned.append(card.allocate(argument.size))
                        if argument.name in program.inputs:
                            card.upload(owned[-1], argument.host)
                    key.append(owned[-1] if argument.address is None else argument.address)
                card.wait("copying to the device", 0)
            loaded((*key, *scalars))
            with card.current():
                card.wait("running", on)
                for argument, address in zip(arguments, key[1:], strict=True):
                    if argument.address is None and argument.name in program.outputs:
                        card.download(argument.host, address)
        finally:
            with card.current():
                for address in owned:
                    card.free(address)
        return self._answer(values)

    def place(self, arrays: Sequence[Any]) -> tuple[int, int | None]:
        """The device and the stream of the first of the arrays that is on a GPU; this function's own device and None
        where none is."""
        for array in arrays:
            library = None if array is _LEFT_OUT else self._library(array)
            if library is not None and (ordinal := library.device(array)) is not None:
                return ordinal, library.stream(array, ordinal) or 0
        return self.ordinal, None


def _bytes_of(scalar: GivenScalar) -> Callable[[Any], bytes]:
    """What a caller gives for a run-time scalar, checked, as the kernel takes it."""
    dtype, checked = scalar.dtype, scalar.quick
    if dtype.is_integer:
        size, mask = dtype.bytes, (1 << dtype.bits) - 1
        return lambda given: (checked(given) & mask).to_bytes(size, sys.byteorder)
    if dtype.name in ("f32", "f64"):
        pack = struct.Struct("=f" if dtype.name == "f32" else "=d").pack
        return lambda given: pack(checked(given))
    return lambda given: scalar.stored(given).tobytes()
