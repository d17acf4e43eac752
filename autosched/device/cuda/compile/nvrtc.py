"""`compile_cuda`: CUDA C++ text to a cubin, by NVRTC. No driver, no toolkit headers and no files take part."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from autosched.codegen import workarounds
from autosched.device.cuda.compile.resources import Resources, resources_of, warnings_of
from autosched.device.cuda.compile.toolkit import Toolkit, toolkit
from autosched.errors import AutoschedError, Location

OPTIONS = ("--std=c++17", "--fmad=false", "--ptxas-options=-v")
"""Products and additions are fused where the text says so (`fma`), as on the CPU; what else is default is IEEE's."""
LIMIT = f"{workarounds.LIMITED_REGISTERS.text}("
UNLIMITED, ROLLED = workarounds.UNLIMITED.text, workarounds.ROLLED_TURNS.text
"""How a text limits a kernel's registers (`limit.cuh`), what lifts it, and what leaves loops as they are."""
TOO_FEW = "Register allocation failed"
"""What ptxas says of a kernel that it has too few registers for (C7600)."""
CACHING = 12, 9
"""NVRTCs from this one on have a cache of their own, and know the option that turns it off."""
SHOWN_ERRORS = 3
NAME = "kernel.cu"
"""What messages call the text."""


class CudaCompileError(AutoschedError):
    """CUDA text that NVRTC refuses; `location` is the first error's line."""


@dataclass(frozen=True)
class Cubin:
    """Machine code of one architecture, what its kernels take, by name, and what the compiler warned of."""

    code: bytes = field(repr=False)
    arch: str
    toolkit: str
    kernels: dict[str, Resources]
    warnings: tuple[str, ...] = ()


def compile_cuda(
    text: str,
    arch: str,
    headers: Mapping[str, str] | None = None,
    *,
    kit: Toolkit | None = None,
    options: tuple[str, ...] = OPTIONS,
) -> Cubin:
    """A cubin of `text` for `arch` (`sm_90a`). `headers` are the files that it includes, by the names it includes them
    by. A kernel that spills within the limit on registers that its text sets, or has too few there, takes no more
    without one, or has its loops rolled, or else goes without the limit: the first of these that spills nothing, or the
    one that spills least. CudaCompileError with the compiler's words and the line; MissingError where no NVRTC is here
    that knows the architecture.
    """
    kit, headers = kit or toolkit(arch), dict(headers or {})
    if LIMIT not in text:
        return _compiled(text, arch, headers, kit, options)
    made = _within_limit(text, arch, headers, kit, options)
    if made is not None and not _spilled(made):
        return made
    free = _compiled(text, arch, headers, kit, (*options, UNLIMITED))
    if made is not None and not _spilled(free) and _registers(free) <= _registers(made):
        return free
    rolled = _within_limit(text, arch, headers, kit, (*options, ROLLED))
    return min((c for c in (rolled, free, made) if c is not None), key=_spilled)


def _within_limit(
    text: str, arch: str, headers: dict[str, str], kit: Toolkit, options: tuple[str, ...]
) -> Cubin | None:
    """None where there are too few registers for any code."""
    try:
        return _compiled(text, arch, headers, kit, options)
    except CudaCompileError as error:
        if TOO_FEW not in str(error):
            raise
        return None


def _spilled(cubin: Cubin) -> int:
    """Bytes, of all kernels."""
    return sum(k.spill_store_bytes + k.spill_load_bytes + k.stack_bytes for k in cubin.kernels.values())


def _registers(cubin: Cubin) -> int:
    """Of a thread, the most of all kernels."""
    return max(k.registers for k in cubin.kernels.values())


def _compiled(
    text: str, arch: str, headers: dict[str, str], kit: Toolkit, options: tuple[str, ...]
) -> Cubin:
    library = kit.library
    program = ctypes.c_void_p()
    names = (ctypes.c_char_p * len(headers))(*(n.encode() for n in headers))
    texts = (ctypes.c_char_p * len(headers))(*(t.encode() for t in headers.values()))
    _check(
        library,
        library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), NAME.encode(), len(headers), texts, names
        ),
    )
    try:
        cache = (workarounds.NO_CACHE.text,) if kit.version >= CACHING else ()
        words = [o.encode() for o in (f"--gpu-architecture={arch}", *options, *cache)]
        status = library.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
        log = _bytes(library, "ProgramLog", program).rstrip(b"\0").decode(errors="replace")
        if status:
            raise _refused(log or _message(library, status), arch, {NAME: text, **headers})
        code = _bytes(library, "CUBIN", program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    return Cubin(code, arch, kit.name, resources_of(log), warnings_of(log))


def _bytes(library: ctypes.CDLL, what: str, program: ctypes.c_void_p) -> bytes:
    """`ProgramLog` or `CUBIN`."""
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    held = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{what}")(program, held))
    return held.raw


def _check(library: ctypes.CDLL, status: int) -> None:
    if status:
        raise CudaCompileError(f"NVRTC: {_message(library, status)}")


def _message(library: ctypes.CDLL, status: int) -> str:
    said: bytes = library.nvrtcGetErrorString(status)
    return said.decode()


def _refused(log: str, arch: str, files: Mapping[str, str]) -> CudaCompileError:
    """The first errors of a log, with the line that the first is about."""
    errors = [line for line in log.splitlines() if re.search(r"\berror\b|\bfatal\b", line)]
    shown = "; ".join(e.strip() for e in errors[:SHOWN_ERRORS]) or log.strip()
    more = f"; and {len(errors) - SHOWN_ERRORS} more" if len(errors) > SHOWN_ERRORS else ""
    return CudaCompileError(f"NVRTC refuses it for {arch}: {shown}{more}", location=_place(errors, files))


def _place(errors: list[str], files: Mapping[str, str]) -> Location | None:
    """Where `name(12): error: …` is; ptxas counts lines of its own text, which the caller does not see."""
    for line in errors:
        match = re.match(r"(?P<file>.+?)\((?P<line>\d+)\): ", line)
        if match and match["file"] in files:
            number = int(match["line"])
            lines = files[match["file"]].splitlines()
            return Location(match["file"], number, 1, lines[number - 1] if number <= len(lines) else "")
    return None
