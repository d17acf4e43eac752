"""Everything a person can cause is an `AutoschedError`; `assert` is for our own mistakes only.

Each class fixes the command's exit status: 2 usage, program or spec; 3 something is missing on this machine;
4 a candidate computed wrong numbers; 1 the run worked and the answer is no.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

SHOWN, LIKE = 24, 8
"""Known names that an error lists at most (all workloads, and all sizes, dtypes and options of each, are fewer).
Of more it lists those most like the unknown one, the nearest first."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a text a person wrote. `line` and `column` count from 1; `text` is the whole line."""

    file: str
    line: int
    column: int = 1
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def snippet(self) -> str:
        """The offending line with a caret below the column."""
        if not self.text.strip():
            return ""
        return f"  {self.text}\n  {' ' * (self.column - 1)}^"


class AutoschedError(Exception):
    """Base of all errors a person can cause; `hint` says what to do about it."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None, location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        parts = [where + self.message]
        if self.location and self.location.snippet():
            parts.append(self.location.snippet())
        if self.hint:
            parts.append("help: " + self.hint.replace("\n", "\n      "))  # further lines as wide as its label
        return "\n".join(parts)


class UsageError(AutoschedError):
    """A flag, size or argument that cannot be right."""


class DataError(UsageError):
    """Data with which the program as it is written cannot run: no fault of a candidate's."""


class ProgramError(AutoschedError):
    """A loop-nest program that does not parse or type-check."""


class SpecError(AutoschedError):
    """An intrinsic or target YAML that is not consistent."""


class PluginError(AutoschedError):
    """A device, strategy or cost model of another package that does not keep to its protocol."""


class StoreError(AutoschedError):
    """A store file that cannot be read or written."""


class MissingError(AutoschedError):
    """A device, compiler or package that this machine does not have."""

    exit_code = 3


class ScratchError(MissingError):
    """The temporary folder cannot be written: no fault of a candidate's."""


class NoScheduleError(AutoschedError):
    """The run worked and the answer is no: no legal schedule, or no candidate that survived."""

    exit_code = 1


class InternalError(AutoschedError):
    """A mistake of ours that was met where it does not end the run; the message names what failed, and where."""

    exit_code = 1

    @classmethod
    def of(cls, what: str, error: Exception) -> InternalError:
        """That `what` failed with an error of Python's.

        >>> InternalError.of("lowering of scalar#3", KeyError("i")).message
        "lowering of scalar#3 failed: KeyError: 'i'"
        """
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        at = "" if frame is None else f" ({frame.tb_frame.f_globals.get('__name__', '?')}, line {frame.tb_lineno})"
        said = f"{what} failed: {type(error).__name__}: {error}{at}"
        return cls(said, hint="this is a mistake of autosched: please report it, with the program")


class WrongResultError(AutoschedError):
    """A kernel computed numbers that differ from the oracle by more than the tolerance."""

    exit_code = 4


class UnknownNameError(UsageError):
    """A name that is not in its catalogue; suggests the nearest.

    >>> raise UnknownNameError("target", "nativ", ["native", "x86-avx2"])
    Traceback (most recent call last):
    autosched.errors.UnknownNameError: unknown target 'nativ'
    help: did you mean 'native'? known: native, x86-avx2
    """

    def __init__(
        self, kind: str, name: str, known: Iterable[str], location: Location | None = None, most: int = SHOWN
    ) -> None:
        names = sorted(known)
        close = nearest(name, names)
        if len(names) > most:
            like = sorted(names, key=lambda n: likeness(name, n), reverse=True)[:LIKE]
            shown = ", ".join(like) + f" and {len(names) - LIKE} more"
        else:
            shown = ", ".join(names)
        hint = (f"did you mean {close!r}? " if close else "") + f"known: {shown or 'none'}"
        super().__init__(f"unknown {kind} {name!r}", hint=hint, location=location)


def check_name(kind: str, name: object) -> None:
    """UsageError where something else than a name is given, such as a class.

    >>> check_name("device", dict)
    Traceback (most recent call last):
    autosched.errors.UsageError: the device is given by name, and dict is no text
    help: a class of your own gets a name from an entry point: see docs/python.md
    """
    if not isinstance(name, str):
        shown = name.__qualname__ if isinstance(name, type) else f"a value of type {type(name).__qualname__}"
        said = f"the {kind} is given by name, and {shown} is no text"
        raise UsageError(said, hint="a class of your own gets a name from an entry point: see docs/python.md")


def likeness(name: str, known: str) -> float:
    """How much a name is like a known one, of 1: like all of it, or like it without what stands before a slash, or
    behind a dot.

    >>> likeness("vpdpbusd", "x86/vpdpbusd.zmm") > likeness("vpdpbusd", "x86/vpdpbusds.zmm") > 0.9
    True
    """
    plain = known.rpartition("/")[2]
    spelt = {known, plain, plain.partition(".")[0]}
    return max(difflib.SequenceMatcher(None, name, one).ratio() for one in spelt)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, or None when nothing comes close.

    The first words of a dotted name count for it, and what stands behind a slash: `vpdpbusdd` is close to
    `x86/vpdpbusd.zmm`.
    """
    spelt: dict[str, str] = {n: n for n in known}
    for full in tuple(spelt):
        for whole in dict.fromkeys((full, full.rpartition("/")[2])):
            words = whole.split(".")
            for end in range(1, len(words) + 1):
                spelt.setdefault(".".join(words[:end]), full)
    found = difflib.get_close_matches(name, list(spelt), n=1, cutoff=0.5)
    return spelt[found[0]] if found else None
