"""Why a study is new although the store has one of the same program: what differs, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from autosched.search.tuning.identity import USUAL
from autosched.store.protocol import differing_fields
from autosched.store.records import StudyRecord

FOLLOWS = ("intrinsics", "spaces")
"""Fields that change with the machine, the threads and what is accepted: named where nothing else differs."""
WORDS = {
    "clock": "another version of the clock",
    "intrinsics": "other instructions",
    "spaces": "other plans or spaces",
    "data": "other data",
}
ASKED = {"-i": "only", "--plans": "families"}
"""Flags by the setting that keeps what they asked for."""
MOST = 3
"""Differences that are named."""


def differences(stored: StudyRecord, wanted: StudyRecord) -> tuple[str, ...]:
    """What differs between the keys of two studies, `threads 1 there, 2 here`: the first few."""
    fields = differing_fields(stored.key, wanted.key)
    found: list[str] = []
    if stored.device != wanted.device:
        found.append(_said("device", stored.device, wanted.device))
    elif "device" in fields:
        found += _apart(*(_described(text or "") for text in fields["device"]))
    if stored.target != wanted.target:
        found.append(_said("target", stored.target, wanted.target))
    elif "target" in fields:
        machines = (_machine(yaml.safe_load(str(r.settings.get("target", "")))) for r in (stored, wanted))
        found += list(_apart(*machines)) or ["other figures of the target"]
    for name in fields:
        if name in USUAL:
            found.append(_said(name, *(str(r.settings.get(name, USUAL[name])) for r in (stored, wanted))))
        elif name not in ("device", "target", *FOLLOWS):
            found.append(_said(name, *fields[name]) if name == "autosched" else WORDS.get(name, name))
    for flag, setting in ASKED.items():  # they decide on plans and instructions
        there, here = (", ".join(map(str, r.settings.get(setting) or ())) or "all" for r in (stored, wanted))
        found += [_said(flag, there, here)] if there != here else []
    found = list(dict.fromkeys(found)) or [WORDS.get(name, name) for name in fields]
    return (*found[:MOST], *([f"{len(found) - MOST} more"] if len(found) > MOST else []))


def _described(text: str) -> dict[str, str]:
    """A device's `name=value name=value …`, whose values may have blanks.

    >>> _described("cpu=EPYC (model 2) threads=1")
    {'cpu': 'EPYC (model 2)', 'threads': '1'}
    """
    return dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", text))


def _machine(target: Any) -> dict[str, str]:
    """What people know a machine by: its cores, features and compiler; figures may be measured anew each time."""
    if not isinstance(target, dict):
        return {}
    compiler, features = target.get("compiler") or {}, target.get("features") or ()
    known = {"cores": (target.get("units") or {}).get("cores"), "compiler": compiler.get("cpu")}
    return {n: str(value) for n, value in known.items() if value} | {f"feature {n}": "yes" for n in features}


def _apart(stored: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[str]:
    for name, values in differing_fields(dict(stored), dict(wanted)).items():
        yield _said(name, *values)


def _said(name: str, there: str | None, here: str | None) -> str:
    return f"{name} {there or 'none'} there, {here or 'none'} here"
