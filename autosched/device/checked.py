"""What a device answers, held to its protocol: a plug-in's mistake becomes a failed trial that names the plug-in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from autosched.device.protocol import Build, Device
from autosched.errors import PluginError
from autosched.store.records import STATUSES, Measurement
from autosched.tiling.candidate import Candidate


def device_name(device: object) -> str:
    """What messages call a device (a text is a name already): its class, with the module where that is not ours.

    >>> device_name("cpu"), device_name(3)
    ('cpu', 'int')
    """
    if isinstance(device, str):
        return device
    kind = type(device)
    own = kind.__module__.startswith("autosched.") or kind.__module__ == "builtins"
    return kind.__qualname__ if own else f"{kind.__module__}.{kind.__qualname__}"


def measurement_of(answer: object, device: object) -> Measurement:
    """The device's answer, or a crash that says what of it cannot be. Numbers become plain floats."""
    if not isinstance(answer, Measurement):
        return _faulty(device, f"measure answered {_short(answer)}, which is no Measurement")
    fault = _fault(answer)
    if fault:
        return _faulty(device, fault, answer.kernel_sha if isinstance(answer.kernel_sha, str) else None)
    if not answer.ok:
        return answer if answer.time_s is None else replace(answer, time_s=None)
    assert answer.time_s is not None
    return replace(answer, time_s=float(answer.time_s), samples_s=tuple(float(s) for s in answer.samples_s))


def build_of(answer: object, candidate: Candidate, device: object) -> Build:
    """The device's build of the candidate, or a failed one that says what of it cannot be."""
    fault = ""
    if not isinstance(answer, Build):
        fault = f"build answered {_short(answer)}, which is no Build"
    elif answer.candidate is not candidate and getattr(answer.candidate, "key", None) != candidate.key:
        fault = "build answered with another candidate's build"
    elif answer.error is not None and not isinstance(answer.error, str):
        fault = f"build answered with the error {_short(answer.error)}, which is no text"
    elif not (_number(answer.seconds) and 0 <= answer.seconds < math.inf):
        fault = f"build answered with a duration of {_short(answer.seconds)} s"
    if fault:
        return Build(candidate, error=_said(device, fault))
    assert isinstance(answer, Build)
    return answer


def builds_of(answer: object, candidates: Sequence[Candidate], device: object) -> list[Build]:
    """The device's builds of several candidates, in order."""
    if not isinstance(answer, list | tuple) or len(answer) != len(candidates):
        raise PluginError(_said(device, f"build_all answered {_short(answer)} for {len(candidates)} candidates"))
    return [build_of(one, candidate, device) for one, candidate in zip(answer, candidates, strict=True)]


def description_of(device: Device) -> dict[str, Any]:
    """What a device says of itself. Raises PluginError where that is no dictionary of plain values with a name."""
    said = device.describe()
    if not isinstance(said, Mapping) or not isinstance(said.get("name"), str) or not said["name"]:
        raise PluginError(
            _said(device, f"describe answered {_short(said)}"), hint="answer with a dict that has a `name`"
        )
    try:
        json.dumps(dict(said), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise PluginError(_said(device, f"describe answered with what JSON cannot hold: {error}")) from None
    return dict(said)


def _fault(m: Measurement) -> str:
    """What of a measurement cannot be; empty where nothing is wrong."""
    if m.status not in STATUSES:
        return f"measure answered with the status {_short(m.status)}; known: {', '.join(STATUSES)}"
    if not isinstance(m.message, str):
        return f"measure answered with the message {_short(m.message)}, which is no text"
    if not isinstance(m.extra, dict) or not isinstance(m.costs_s, dict):
        return "measure answered with costs_s or extra that are no dict"
    if not all(isinstance(name, str) and _number(s) and 0 <= s < math.inf for name, s in m.costs_s.items()):
        return f"measure answered with costs of {_short(m.costs_s)} s"
    try:
        json.dumps(m.extra)
    except (TypeError, ValueError, RecursionError) as error:
        return f"measure answered with an extra that JSON cannot hold: {error}"
    for name in ("max_abs_error", "tolerance"):
        if getattr(m, name) is not None and not _number(getattr(m, name)):
            return f"measure answered with a {name} of {_short(getattr(m, name))}"
    return _fault_of_times(m) if m.ok else ""


def _fault_of_times(m: Measurement) -> str:
    if not _seconds(m.time_s):
        return f"measure answered ok with a time of {_short(m.time_s)} s; a time is above 0 and finite"
    if not isinstance(m.samples_s, list | tuple) or not all(map(_seconds, m.samples_s)):
        return f"measure answered ok with samples of {_short(m.samples_s)} s; they are above 0 and finite"
    if m.spread is not None and not (_number(m.spread) and 0 <= m.spread < math.inf):
        return f"measure answered ok with a spread of {_short(m.spread)}"
    cost = m.extra.get("cost")
    return "" if cost is None or _seconds(cost) else f"measure answered ok with a cost of {_short(cost)}"


def _number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _seconds(value: Any) -> bool:
    return _number(value) and 0 < value < math.inf


def _faulty(device: object, fault: str, kernel_sha: str | None = None) -> Measurement:
    return Measurement("crash", message=_said(device, fault), kernel_sha=kernel_sha)


def _said(device: object, fault: str) -> str:
    return f"the device {device_name(device)} is at fault: {fault}"


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:
        text = f"a {type(value).__name__} ({type(error).__name__} in its repr)"
    return text if len(text) <= 60 else f"{text[:57]}..."
