"""NVIDIA's run-time compiler as a library: which versions are installed, and for which architectures each compiles.

Several may be installed: version 12 compiles for compute capabilities below 7.5, version 13 does not. No driver is
needed.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autosched.errors import MissingError

FIX = "pip install nvidia-cuda-nvrtc, or nvidia-cuda-nvrtc-cu12 for compute capabilities below 7.5"
SONAMES = ("libnvrtc.so.13", "libnvrtc.so.12")
_PLACES = ("cu13/lib", "cuda_nvrtc/lib")
"""Below the folder of NVIDIA's wheels."""


@dataclass(frozen=True)
class Toolkit:
    """One NVRTC: its version as (major, minor), and the numbers of its architectures (90 for sm_90 and sm_90a)."""

    version: tuple[int, int]
    path: str
    archs: frozenset[int]

    @property
    def name(self) -> str:
        return f"NVRTC {self.version[0]}.{self.version[1]}"

    @property
    def release(self) -> str:
        """The build of the version, from its own output (`V12.9.86`): builds may generate different code."""
        return _release(self.path, min(self.archs))

    @property
    def library(self) -> ctypes.CDLL:
        return _library(self.path)


@cache
def toolkits() -> tuple[Toolkit, ...]:
    """The NVRTCs of NVIDIA's wheels and of the system, newest first."""
    found: dict[tuple[int, int], Toolkit] = {}
    for path in _candidates():
        try:
            kit = _toolkit(path)
        except (OSError, AttributeError):
            continue
        found.setdefault(kit.version, kit)
    return tuple(found[v] for v in sorted(found, reverse=True))


def toolkit(arch: str, newest: tuple[int, int] | None = None) -> Toolkit:
    """The newest that compiles for `arch` (`sm_90a`), not newer than `newest`. MissingError where there is none."""
    number = arch_number(arch)
    found = toolkits()
    if not found:
        raise MissingError("NVRTC, which compiles CUDA, is not installed", hint=FIX)
    fitting = [k for k in found if number in k.archs]
    if not fitting:
        known = ", ".join(k.name for k in found)
        raise MissingError(f"{known} does not compile for {arch}", hint=FIX)
    of_driver = [k for k in fitting if newest is None or k.version[0] <= newest[0]]
    if not of_driver:
        assert newest is not None
        raise MissingError(
            f"the driver is of CUDA {newest[0]}.{newest[1]}, older than {fitting[-1].name}",
            hint="update the driver, or install an older NVRTC (nvidia-cuda-nvrtc-cu12)",
        )
    # Cubins run on any driver of their major version; a minor version that the driver knows is preferred.
    return next((k for k in of_driver if newest is None or k.version <= newest), of_driver[-1])


def arch_number(arch: str) -> int:
    """90 for `sm_90a`. MissingError for what is no architecture."""
    found = re.fullmatch(r"sm_(\d+)[af]?", arch)
    if not found:
        raise MissingError(f"{arch!r} is no architecture of NVIDIA's", hint="as in sm_90a (a target's `compiler.arch`)")
    return int(found[1])


def wheel_folder(below: str) -> Path | None:
    """A folder of NVIDIA's wheels (`cu13/bin`) where it is installed."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(root) / below).is_dir():
            return Path(root) / below
    return None


def _candidates() -> list[str]:
    found = []
    for place in _PLACES:
        folder = wheel_folder(place)
        if folder is not None:
            found += [str(folder / name) for name in SONAMES if (folder / name).exists()]
    return [*found, *SONAMES]


def _toolkit(path: str) -> Toolkit:
    library = _library(path)
    major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    archs = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(archs)
    return Toolkit((major.value, minor.value), path, frozenset(archs))


@cache
def _library(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


@cache
def _release(path: str, arch: int) -> str:
    """The build, from the head of an empty program's PTX, since `nvrtcVersion` leaves it out; empty if not found."""
    library, program, size = _library(path), ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), b"", b"empty.cu", 0, None, None)
    try:
        library.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(f"--gpu-architecture=compute_{arch}".encode()))
        library.nvrtcGetPTXSize(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(max(1, size.value))
        library.nvrtcGetPTX(program, text)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    found = re.search(r"V\d+\.\d+\.\d+", text.value.decode(errors="replace"))
    return found[0] if found else ""
