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
    from autosched.api import compare, einsum, load, match, parse, resolve, simulate, target, tune, tune_all, workload

__all__ = [
    "__version__",
    "compare",
    "device",
    "einsum",
    "intrinsics",
    "load",
    "match",
    "parse",
    "resolve",
    "simulate",
    "target",
    "targets",
    "tune",
    "tune_all",
    "workload",
]


def __getattr__(name: str) -> Any:
    """The interface is loaded when it is first used, so that one room can be imported without the others.

    `device` is the package of that name, which can be called (see there).
    """
    if name in ("device", "intrinsics", "targets"):
        return import_module(f"autosched.{name}")
    if name in __all__:
        return getattr(import_module("autosched.api"), name)
    raise AttributeError(f"module 'autosched' has no attribute {name!r}")
