"""The built-in files, parsed lazily: `Shelf` parses a file when a caller asks for a name that the file may describe.

What a file may describe is seen from its folder (an isa) and from the lines with its `name:` keys, without parsing it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources.abc import Traversable

from autosched.tensorize.spec.load import IntrinsicEntry, deferred_text

_NAME = re.compile(r"""\bname["']?:[ ]*["']?([^\s"',]*)""")
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class File:
    """A file of a folder whose intrinsics all have one `isa`. `place` names it in errors."""

    isa: str
    place: str
    source: Traversable

    @cached_property
    def text(self) -> str:
        return self.source.read_text(encoding="utf-8")

    @cached_property
    def entries(self) -> dict[str, IntrinsicEntry]:
        return deferred_text(self.text, self.place)

    @cached_property
    def beginnings(self) -> tuple[str, ...]:
        """Of what stands behind `name:` anywhere: with the isa, up to the first field of a family."""
        names = (found.split("{", maxsplit=1)[0].rstrip("}") for found in _NAME.findall(self.text))
        return tuple(f"{self.isa}/{name}" for name in dict.fromkeys(names))

    def may_hold(self, pattern: str) -> bool:
        """Whether a name of the file may match a glob, or what follows its isa where the glob has no `/`: what is fixed
        at the beginning of both agrees."""
        start = _WILD.split(pattern, maxsplit=1)[0]
        bare = "/" not in pattern
        return any(_agree(start, b) or (bare and _agree(start, b.split("/", 1)[1])) for b in self.beginnings)


def _agree(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


class Shelf(Mapping[str, IntrinsicEntry]):
    """Entries of files by full name, in the order of the files."""

    def __init__(self, files: Iterable[File]) -> None:
        self.files = tuple(files)

    def names(self, patterns: Iterable[str]) -> list[str]:
        """The names of the files that may have a match for one of some globs, in order."""
        wanted = list(patterns)
        return [name for file in self.files if any(map(file.may_hold, wanted)) for name in file.entries]

    def of_isa(self, isas: Iterable[str]) -> list[str]:
        """The names of some isas, in order."""
        wanted = set(isas)
        return [name for file in self.files if file.isa in wanted for name in file.entries]

    def __getitem__(self, name: str) -> IntrinsicEntry:
        isa = name.split("/")[0]
        for file in self.files:
            if file.isa == isa and file.may_hold(re.sub(_WILD, "[\\g<0>]", name)) and name in file.entries:
                return file.entries[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for file in self.files for name in file.entries)

    def __len__(self) -> int:
        return sum(len(file.entries) for file in self.files)
