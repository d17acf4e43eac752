"""The GPU's clocks as it reports them (NVML, where `nvidia-ml-py` is installed): noted beside every time."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class Clocks:
    """Of the device number `ordinal`. Without NVML there is nothing to say, and nothing is."""

    def __init__(self, ordinal: int) -> None:
        self._nvml: Any = None
        try:
            nvml: Any = import_module("pynvml")
            nvml.nvmlInit()
            self._handle = nvml.nvmlDeviceGetHandleByIndex(ordinal)
            self._nvml = nvml
        except Exception:  # not installed, no library, no permission: each has a class of its own
            self._nvml = None

    def now(self) -> dict[str, Any]:
        """`sm_mhz`, `memory_mhz`, `power_w`, `temperature_c`; what cannot be read is left out."""
        if self._nvml is None:
            return {}
        nvml, handle = self._nvml, self._handle
        looks: dict[str, Callable[[], Any]] = {
            "sm_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            "memory_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            "power_w": lambda: round(nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        }
        found: dict[str, Any] = {}
        for name, look in looks.items():
            try:
                found[name] = int(look())
            except Exception:
                continue
        return found
