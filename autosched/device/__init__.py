"""Building and timing candidates: the devices `cpu`, `cuda`, `simulator` and `replay`, and what they share. Read
`protocol`, then `cpu.device`.

The package can be called: `autosched.device("cpu")` is `registry.device("cpu")`, the name that the Python interface
promises and that a module of this name would otherwise hide.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autosched.device.protocol import Device


class _Callable(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Device:
        from autosched.device.registry import device

        return device(*args, **options)


sys.modules[__name__].__class__ = _Callable
