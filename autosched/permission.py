"""Registers that a system lets a process use once it has asked. Asking again changes nothing."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Permission:
    """A system call that asks for it: its number on x86-64 Linux, and its arguments."""

    number: int
    arguments: tuple[int, ...]


NEEDED = {"amx_tile": Permission(158, (0x1023, 18))}
"""By feature. Linux saves registers as large as tile data for processes that ask: arch_prctl(ARCH_REQ_XCOMP_PERM,
XFEATURE_XTILEDATA); Linux, Documentation/arch/x86/xstate.rst."""


def asked_of(features: Iterable[str]) -> tuple[Permission, ...]:
    """What code that needs these features has to ask for."""
    return tuple(NEEDED[f] for f in sorted(set(features) & NEEDED.keys()))


@cache
def _granted(permission: Permission) -> bool:
    if sys.platform != "linux" or platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return int(call(*map(ctypes.c_long, (permission.number, *permission.arguments)))) == 0


def refused(features: Iterable[str], granted: Callable[[Permission], bool] = _granted) -> frozenset[str]:
    """Those of these features that this process asked for and may not use, with what works on the same registers
    (`amx_int8` on those of `amx_tile`)."""
    found = set(features)
    denied = {_family(f) for f in found & NEEDED.keys() if not granted(NEEDED[f])}
    return frozenset(f for f in found if _family(f) in denied)


def _family(feature: str) -> str:
    return feature.partition("_")[0]
