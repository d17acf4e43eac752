"""autosched: proved auto-tensorization and auto-scheduling.

A loop-nest program and YAML descriptions of hardware instructions go in; the fastest verified kernel comes out. Rooms,
in the order in which data passes through them: `ir`, `tensorize`, `machine`, `tiling`, `codegen`, `store`, `costmodel`,
`device`, `search`, `report`, `cli`; `logic` is below them all. Start with `api`, whose functions this package offers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from autosched.version import __version__

if TYPE_CHECKING:
    from autosched.api import (
        compare,
        einsum,
        load,
        match,
        parse,
        resolve,
        rewrites,
        simulate,
        target,
        tune,
        tune_all,
        workload,
    )
    from autosched.device.protocol import Device

__all__ = [
    "__version__",
    "compare",
    "device",
    "einsum",
    "errors",
    "intrinsics",
    "load",
    "match",
    "parse",
    "resolve",
    "rewrites",
    "simulate",
    "target",
    "targets",
    "tune",
    "tune_all",
    "workload",
]


# First: Python would put the package, imported later, in the place of the function.
import_module("autosched.device")


def device(name: str = "auto", *arguments: Any, **options: Any) -> Device:
    """The device of a name, for a program and a target: see `autosched.api.device`."""
    from autosched.api import device as open_device

    return open_device(name, *arguments, **options)


def __getattr__(name: str) -> Any:
    """The interface is loaded when it is first used, so that one room can be imported without the others."""
    if name in ("errors", "intrinsics", "targets"):
        return import_module(f"autosched.{name}")
    if name in __all__:
        return getattr(import_module("autosched.api"), name)
    raise AttributeError(f"module 'autosched' has no attribute {name!r}")
