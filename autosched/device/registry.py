"""Devices by name: the built-in ones, and those that packages register as entry points of `autosched.devices`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module, metadata
from inspect import signature
from pathlib import Path
from typing import Any

from autosched.backends import PORTABLE, host_backend
from autosched.device.protocol import Detected, Device
from autosched.errors import AutoschedError, MissingError, PluginError, UnknownNameError, UsageError, check_name
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tensorize.spec.catalogue import Catalogue

GROUP = "autosched.devices"
BUILTIN = {
    "cpu": ("autosched.device.cpu.device", "CpuDevice"),
    "simulator": ("autosched.device.emulated", "simulator"),
    "cuda": ("autosched.device.cuda.device", "CudaDevice"),
    "replay": ("autosched.device.replay", "ReplayDevice"),
}
"""Name to module and factory, imported when asked for. A factory takes `(program, target, **options)`."""
FROM_A_FILE = ("replay",)
"""Devices that are asked for with a file: `replay:FILE`."""


def device_names() -> tuple[str, ...]:
    """All names that `device` knows, plug-ins included."""
    return tuple(sorted({*BUILTIN, *(e.name for e in metadata.entry_points(group=GROUP))}))


def named(text: str) -> tuple[str, dict[str, Any]]:
    """A device's name, and its options as far as the text holds them: `replay:FILE`."""
    name, colon, path = text.partition(":")
    return (name, {"path": path}) if colon and name in FROM_A_FILE else (text, {})


def device(name: str = "auto", program: Program | None = None, target: Target | None = None, **options: Any) -> Device:
    """The device called `name` for a program and a target (None: this machine).

    `auto` is the device of the target's backend where this machine runs the target (the `cpu` or `cuda`, or a
    package's), and the `simulator` for others, and where it is asked for what only the simulator does. UnknownNameError
    for a name that nothing provides, MissingError where this machine lacks what it needs, UsageError for options it
    does not take.
    """
    check_name("device", name)
    if name == "auto":
        name = best_for(target, options)
    name, own = named(name)
    factory = _factory(name)
    options |= own
    try:
        return factory(program, target, **options)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        unknown = str(error).split("'")[1]
        others = [other for other in BUILTIN if _takes(other, unknown)]
        hint = f"{' and '.join(others)} {'do' if len(others) > 1 else 'does'}" if others else None
        raise UsageError(f"the device {name} takes no option {unknown!r}", hint=hint) from None


def runs_on(name: str, target: Target) -> bool:
    """Whether the device of that name runs the target's code on this machine. It says so itself, by a function `runs`
    of its class; one that has none is taken to. A device that is not there runs nothing."""
    try:
        made, what = _loaded(name)
    except (MissingError, UnknownNameError):
        return False
    runs = getattr(made, "runs", None)
    try:
        return runs is None or bool(runs(target))
    except AutoschedError:
        raise
    except Exception as error:
        raise PluginError(f"{what} cannot tell what it runs: {type(error).__name__}: {error}") from error


def detect(name: str, known: Catalogue, effort: str, cache: Path | None = None) -> Detected:
    """The machine of a device that can describe it (`detect` of its class). UnknownNameError for another name,
    MissingError where there is no such machine."""
    if name not in (names := device_names()) or (made := getattr(_loaded(name)[0], "detect", None)) is None:
        raise UnknownNameError("device", name, filter(_detects, names))
    found: Detected = made(known, effort, cache)
    return found


def _detects(name: str) -> bool:
    try:
        return hasattr(_loaded(name)[0], "detect")
    except MissingError:
        return False


def best_for(
    target: Target | None, options: Mapping[str, Any], runs: Callable[[str, Target], bool] = runs_on
) -> str:
    """The device that `auto` is for these options: that of the target's backend, where it runs the target here and
    takes them, else the simulator. This machine's own is taken with any options: it says which it does not take."""
    own = host_backend().device or PORTABLE.device
    name = own if target is None else target.backend.device
    if name is None or (target is not None and not runs(name, target)):
        return "simulator"
    return name if name == own or all(_takes(name, option) for option in options) else "simulator"


def _takes(name: str, option: str) -> bool:
    try:
        parameters = signature(_loaded(name)[0]).parameters
    except MissingError:
        return False
    return option in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _made(what: str, factory: Callable[..., Device], *arguments: Any, **options: Any) -> Device:
    """A plug-in's device. Raises PluginError where its factory fails, or makes something that is no device."""
    try:
        found = factory(*arguments, **options)
    except AutoschedError:
        raise
    except Exception as error:
        if isinstance(error, TypeError) and "unexpected keyword argument" in str(error):
            raise
        raise PluginError(f"{what} does not start: {type(error).__name__}: {error}") from error
    for method in ("describe", "build", "measure", "close"):
        if not callable(getattr(found, method, None)):
            raise PluginError(f"{what} has no method {method}", hint="see docs/python.md")
    return found


def _factory(name: str) -> Callable[..., Device]:
    made, what = _loaded(name)
    return made if what in BUILTIN else partial(_made, what, made)


def _loaded(name: str) -> tuple[Callable[..., Device], str]:
    """What makes the device of that name, and what messages call it: a built-in one by its name."""
    for entry in metadata.entry_points(group=GROUP):
        if entry.name == name:
            try:
                return entry.load(), f"the device {name!r} of {entry.value}"
            except Exception as error:
                raise MissingError(f"the device {name!r} of {entry.value} does not load: {error}") from error
    if name not in BUILTIN:
        raise UnknownNameError("device", name, [*device_names(), "auto"])
    module, attribute = BUILTIN[name]
    try:
        return getattr(import_module(module), attribute), name
    except ModuleNotFoundError as error:
        hint = "use -d cpu, or -d simulator where there is no such hardware"
        raise MissingError(f"the device {name!r} is not available here: {error}", hint=hint) from None
