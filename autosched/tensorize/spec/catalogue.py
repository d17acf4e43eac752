"""`Catalogue`: intrinsics by full name, from the built-in files and from a user's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from autosched.errors import SpecError, UnknownNameError
from autosched.tensorize.intrinsic import Intrinsic, Outline
from autosched.tensorize.spec.load import load_file, load_text
from autosched.tensorize.spec.shelf import File, Shelf

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Catalogue(Mapping[str, Intrinsic]):
    """A frozen mapping from full names (`x86/vpdpbusd.zmm`) to intrinsics, in order of loading.

    >>> catalogue = Catalogue.builtin()         # .with_paths(["my_npu.yaml"]) adds a user's
    >>> [i.name for i in catalogue.select(["x86/vpdpbusd.*"])]
    ['x86/vpdpbusd.zmm', 'x86/vpdpbusd.ymm', 'x86/vpdpbusd.vex.ymm']
    """

    entries: Mapping[str, Intrinsic] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def builtin(cls) -> Catalogue:
        """The intrinsics that come with autosched; read once a process."""
        return _builtin()

    def __getitem__(self, name: str) -> Intrinsic:
        """The intrinsic of a full name; KeyError where there is none (`find` says what is near)."""
        return self.entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __hash__(self) -> int:
        return hash(tuple((n, i.version) for n, i in self.entries.items()))

    def __reduce__(self) -> tuple[object, ...]:
        return _thaw, (dict(self.entries),)  # a mapping proxy cannot be sent to a worker process

    def find(self, name: str) -> Intrinsic:
        """The intrinsic of a full name; UnknownNameError with the nearest one otherwise."""
        if name not in self.entries:
            raise UnknownNameError("intrinsic", name, self.entries)
        return self.entries[name]

    def outlines(self, patterns: Iterable[str] | None = None) -> tuple[Outline, ...]:
        """What a list shows of each intrinsic, or of those that `select` finds; the built-in ones are not built."""
        names = self.entries if patterns is None else self._matching(patterns)
        return tuple(_At(self.entries, n).outline() for n in names)

    def of_isa(
        self, *isas: str, features: frozenset[str] | None = None, kind: str | None = None
    ) -> tuple[Intrinsic, ...]:
        """Intrinsics of these instruction sets, or of all where none is named, in catalogue order; with `features`,
        those that need no others, with `kind`, those of it: no other one is built."""
        names = list(self.entries if not isas else _of_isa(self.entries, frozenset(isas)))
        if features is not None or kind is not None:
            outlines = [_At(self.entries, n).outline() for n in names]
            names = [
                o.name
                for o in outlines
                if (features is None or o.requires <= features) and (kind is None or o.kind == kind)
            ]
        return tuple(self.entries[n] for n in names)

    def select(self, patterns: Iterable[str]) -> tuple[Intrinsic, ...]:
        """Intrinsics whose name matches any glob, in catalogue order; UnknownNameError for a glob that matches none.

        A pattern without `/` is also tried behind any isa: `vpdpbusd*` finds `x86/vpdpbusd.zmm`.
        """
        return tuple(self.entries[n] for n in self._matching(patterns))

    def _matching(self, patterns: Iterable[str]) -> list[str]:
        patterns = list(patterns)
        among = list(_possible(self.entries, patterns))
        chosen: set[str] = set()
        for pattern in patterns:
            wide = pattern if "/" in pattern else f"*/{pattern}"
            hits = [n for n in among if fnmatchcase(n, pattern) or fnmatchcase(n, wide)]
            if not hits:
                raise UnknownNameError("intrinsic", pattern, self.entries)
            chosen.update(hits)
        return [n for n in among if n in chosen]

    def with_intrinsics(self, intrinsics: Iterable[Intrinsic]) -> Catalogue:
        """This catalogue and more; SpecError where a name is already there."""
        added: dict[str, Intrinsic] = {}
        for made in intrinsics:
            if made.name in added or made.name in self.entries:
                known = added.get(made.name) or self.entries[made.name]
                hint = f"it is also in {known.path}; give one of them another name"
                raise SpecError(f"{made.path}: {made.name} is described twice", hint=hint)
            added[made.name] = made
        return Catalogue(_Deferred(_Joined(self.entries, added)))

    def with_paths(self, paths: Iterable[str | Path]) -> Catalogue:
        """This catalogue and the intrinsics of YAML files, or of all YAML files below folders. A file that is named
        twice is read once."""
        found = self
        files = {_real(file): file for path in paths for file in _files(Path(path))}
        for file in files.values():
            found = found.with_intrinsics(load_file(file))
        return found


def is_own(intrinsic: Intrinsic) -> bool:
    """Whether an intrinsic is not one that comes with autosched, as it comes."""
    builtin = Catalogue.builtin()
    return intrinsic.name not in builtin or builtin[intrinsic.name].version != intrinsic.version


def _real(file: Path) -> str:
    """The file's name without links; what is none is left to the reader, who says so."""
    try:
        return os.path.realpath(file)
    except (OSError, ValueError):
        return str(file)


def _thaw(entries: dict[str, Intrinsic]) -> Catalogue:
    return Catalogue(MappingProxyType(entries))


def load(path_or_text: str | Path) -> tuple[Intrinsic, ...]:
    """The intrinsics of a YAML file, of a folder, or of YAML text (anything with a line break)."""
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        return load_text(path_or_text)
    return tuple(i for file in _files(Path(path_or_text)) for i in load_file(file))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
    if not found:
        raise SpecError(f"no YAML file in the folder {path}")
    return found


class _Recipe(Protocol):
    def build(self) -> Intrinsic: ...

    def outline(self) -> Outline: ...


class _Deferred(Mapping[str, Intrinsic]):
    """Intrinsics built when they are first asked for: few of the built-in ones are, on any one machine."""

    def __init__(self, recipes: Mapping[str, _Recipe]) -> None:
        self.recipes = recipes
        self._built: dict[str, Intrinsic] = {}

    def __getitem__(self, name: str) -> Intrinsic:
        if name not in self._built:
            self._built[name] = self.recipes[name].build()
        return self._built[name]

    def __contains__(self, name: object) -> bool:
        return name in self.recipes

    def __iter__(self) -> Iterator[str]:
        return iter(self.recipes)

    def __len__(self) -> int:
        return len(self.recipes)

    def outline(self, name: str) -> Outline:
        return self.recipes[name].outline()


@dataclass(frozen=True)
class _At:
    """An intrinsic of other entries, which keep it once it is built."""

    entries: Mapping[str, Intrinsic]
    name: str

    def build(self) -> Intrinsic:
        return self.entries[self.name]

    def outline(self) -> Outline:
        if isinstance(self.entries, _Deferred):
            return self.entries.outline(self.name)
        return self.entries[self.name].outline


class _Joined(Mapping[str, _Recipe]):
    """Two catalogues' entries, those of the first one first; no name is in both."""

    def __init__(self, first: Mapping[str, Intrinsic], second: Mapping[str, Intrinsic]) -> None:
        self.parts = first, second

    def __getitem__(self, name: str) -> _Recipe:
        for entries in self.parts:
            if name in entries:
                return _At(entries, name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for entries in self.parts for name in entries)

    def __len__(self) -> int:
        return sum(map(len, self.parts))


def _shelved(entries: Mapping[str, object], chosen: Callable[[Shelf], Iterable[str]]) -> Iterator[str]:
    """The names in `entries`, in order, but of built-in files those that `chosen` takes."""
    match entries:
        case _Deferred():
            yield from _shelved(entries.recipes, chosen)
        case _Joined():
            for part in entries.parts:
                yield from _shelved(part, chosen)
        case Shelf():
            yield from chosen(entries)
        case _:
            yield from entries


def _possible(entries: Mapping[str, object], patterns: Iterable[str]) -> Iterator[str]:
    """Names among which are all that match a glob; files that have none are not read."""
    return _shelved(entries, lambda shelf: shelf.names(patterns))


def _of_isa(entries: Mapping[str, object], isas: frozenset[str]) -> Iterator[str]:
    """The names of some instruction sets; files of others are not read."""
    return (n for n in _shelved(entries, lambda shelf: shelf.of_isa(isas)) if n.split("/")[0] in isas)


@cache
def _builtin() -> Catalogue:
    folders = sorted((f for f in resources.files("autosched.intrinsics").iterdir() if f.is_dir()), key=lambda f: f.name)
    found = [(folder.name, file) for folder in folders for file in sorted(folder.iterdir(), key=lambda f: f.name)]
    files = (File(isa, f"intrinsics/{isa}/{f.name}", f) for isa, f in found if f.name.endswith(SUFFIXES))
    return Catalogue(_Deferred(Shelf(files)))
