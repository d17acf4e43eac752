"""Our device headers: the texts under `include/`, by the names that files include them by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

FOLDER = "include/autosched"
_INCLUDE = re.compile(r'^#include "(autosched/[\w.]+)"$', re.MULTILINE)
_DEFINED = re.compile(r"(?:__forceinline__ [\w:<>&* ]*?|struct (?:alignas\(\d+\) )?|using )(\w+)(?=\(| =| \{|;)")


@cache
def device_headers() -> dict[str, str]:
    """All headers."""
    folder = files("autosched.codegen.cuda").joinpath(FOLDER)
    found = {f"autosched/{f.name}": f.read_text("utf-8") for f in folder.iterdir() if f.name.endswith(".cuh")}
    return dict(sorted(found.items()))


@cache
def defined() -> frozenset[str]:
    """Names that the headers define."""
    return frozenset(name for text in device_headers().values() for name in _DEFINED.findall(text))


def needed(names: Iterable[str]) -> dict[str, str]:
    """The headers of these names and those that they include, each after those."""
    every, done = device_headers(), dict[str, str]()

    def add(name: str) -> None:
        if name in done:
            return
        for inner in _INCLUDE.findall(every[name]):
            add(inner)
        done[name] = every[name]

    for name in names:
        add(name)
    return done
