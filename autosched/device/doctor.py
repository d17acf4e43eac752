"""What this machine can do, and what to do about what it cannot."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import llvmlite
import llvmlite.binding as llvm

from autosched.backends import PORTABLE, host_backend
from autosched.codegen.cuda.emulation.build import compiler
from autosched.device.cuda.client import Client
from autosched.device.cuda.compile.sass import disassembler
from autosched.device.cuda.compile.toolkit import FIX as NVRTC_FIX
from autosched.device.cuda.compile.toolkit import toolkits
from autosched.device.processes.process import WorkerProcess
from autosched.errors import AutoschedError
from autosched.machine import native
from autosched.machine.detect import caches, cpu_model, usable_cpus
from autosched.machine.host import host_features
from autosched.machine.object_loader import Loaded

COMPILERS = ("cc", "gcc", "clang")
_ANSWER = 42


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `needed` ones must be `ok` for `tune` to work; `fix` says what to do where it is not."""

    name: str
    ok: bool
    detail: str
    fix: str = ""
    needed: bool = False


def diagnose() -> list[Finding]:
    """Look at everything; never raises."""
    findings = []
    for name, needed, look in _CHECKS:
        try:
            findings += [Finding(name, ok, detail, "" if ok else fix, needed) for ok, detail, fix in look()]
        except Exception as error:  # a broken installation is what this command is for
            findings.append(Finding(name, False, f"{type(error).__name__}: {error}", "reinstall autosched", needed))
    return findings


Looks = Iterator[tuple[bool, str, str]]


def _python() -> Looks:
    yield sys.version_info >= (3, 11), f"{platform.python_version()} ({sys.executable})", "use Python 3.11 or newer"


def _jit() -> Looks:
    native.start()
    version = ".".join(map(str, llvm.llvm_version_info))
    code = native.compile_ir(f"define i32 @answer() {{\n  ret i32 {_ANSWER}\n}}")
    loaded = Loaded(code)
    got = ctypes.CFUNCTYPE(ctypes.c_int32)(loaded.address("answer"))()
    detail = f"llvmlite {llvmlite.__version__}, LLVM {version}"
    yield got == _ANSWER, detail, "pip install --force-reinstall 'llvmlite>=0.50,<0.51'"


def _worker() -> Looks:
    process = WorkerProcess("autosched.device.cpu.worker", usable_cpus()[-1:])
    try:
        process.ensure()
        yield True, "starts, and answers", ""
    except AutoschedError as error:
        yield False, error.message, error.hint or ""
    finally:
        process.close()


def _cpu() -> Looks:
    known = host_backend() is not PORTABLE
    cores = f"{len(usable_cpus())} usable CPUs of {os.cpu_count()}"
    levels = ", ".join(f"L{c.level} {c.bytes // 1024:,} KiB" for c in caches())
    detail = f"{cpu_model()}, {cores}" + (f", {levels}" if levels else "")
    yield known, detail, "kernels run on x86-64 and AArch64; elsewhere use -d simulator"


def _features() -> Looks:
    found = [f for f in host_backend().notable if f in host_features()]
    yield bool(found), ", ".join(found) or "baseline only", (
        "no vector instruction of the catalogue is here: only scalar kernels; use -t x86-avx512 -d simulator to explore"
    )


def _compiler() -> Looks:
    found = next((path for c in COMPILERS if (path := shutil.which(c))), None)
    fix = "not needed to tune; install gcc or clang to build exported C"
    yield found is not None, found or "none found", fix


def _emulator() -> Looks:
    try:
        command = compiler()
    except AutoschedError as error:
        yield False, error.message, error.hint or ""
        return
    found = shutil.which(command[0])
    fix = "only --emulate needs it: install g++ or clang++, or name one in CXX"
    yield found is not None, found or f"{command[0]} is not found", fix


def _driver() -> Looks:
    driver = _loads("libcuda.so.1")
    yield driver, "driver found" if driver else "no NVIDIA driver", (
        "install the NVIDIA driver on a machine with an NVIDIA GPU; here use -t nvidia-h200 -d simulator"
    )


def _gpu() -> Looks:
    fix = "kernels run on NVIDIA GPUs with -d cuda; here use -t nvidia-h200 -d simulator"
    client = Client()
    try:
        facts = client.facts()
        said = f"{facts.name}, {facts.arch}, driver of CUDA {facts.driver[0]}.{facts.driver[1]}"
        yield True, said, ""
    except AutoschedError as error:
        yield False, error.message, error.hint or fix
    finally:
        client.close()


def _nvrtc() -> Looks:
    found = toolkits()
    shown = ", ".join(f"{k.name} (sm_{min(k.archs)} to sm_{max(k.archs)})" for k in found)
    yield bool(found), shown or "no NVRTC", NVRTC_FIX


def _nvdisasm() -> Looks:
    try:
        yield True, disassembler(), ""
    except AutoschedError as error:
        yield False, error.message, error.hint or ""


def _torch() -> Looks:
    found = _module("torch")
    fix = "only benchmarks compare with it: pip install 'autosched[bench]'"
    yield found, "PyTorch found" if found else "no PyTorch", fix


def _loads(*libraries: str) -> bool:
    for library in libraries:
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return True
    return False


def _module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


_CHECKS: tuple[tuple[str, bool, Callable[[], Looks]], ...] = (
    ("python", True, _python),
    ("llvm jit", True, _jit),
    ("timing worker", True, _worker),
    ("cpu", True, _cpu),
    ("vector instructions", False, _features),
    ("c compiler", False, _compiler),
    ("c++ compiler", False, _emulator),
    ("nvidia driver", False, _driver),
    ("nvidia gpu", False, _gpu),
    ("nvrtc", False, _nvrtc),
    ("nvdisasm", False, _nvdisasm),
    ("pytorch", False, _torch),
)
