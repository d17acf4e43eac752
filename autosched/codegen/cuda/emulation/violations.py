"""What the emulator finds wrong with a kernel, and where."""

from __future__ import annotations

from dataclasses import dataclass

from autosched.errors import Location, WrongResultError

Index = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file, from the compiler's debug information."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Violation:
    """`kind`: one of a few words (`race`, `out of bounds`, `deadlock` …). `places`: the line, then the lines into which
    it was inlined, innermost first. `other`: of a race, the thread of the other access; `other_places`: its lines."""

    kind: str
    detail: str
    kernel: str
    block: Index
    thread: Index
    places: tuple[SourceLine, ...] = ()
    other: str = ""
    other_places: tuple[SourceLine, ...] = ()


class EmulationError(WrongResultError):
    """A kernel does something for which a GPU may give wrong numbers, always or sometimes, or never end."""

    def __init__(self, violation: Violation, file: str, lines: list[str]) -> None:
        self.violation = v = violation
        place = _own(v.places, file)
        message = f"{v.kind}: {v.detail} (kernel {v.kernel}, block {v.block}, thread {v.thread})"
        if v.other:
            there = _own(v.other_places, file)
            at = f", at {there}" if there is not None else ""
            message += f"; the other: {v.other}{at}"
        location = None
        if place is not None:
            text = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
            column = len(text) - len(text.lstrip()) + 1
            location = Location(file, place.line, column, text)
        super().__init__(message, location=location)

    @property
    def line(self) -> int | None:
        """The line of the emitted file."""
        return self.location.line if self.location else None


def _own(places: tuple[SourceLine, ...], file: str) -> SourceLine | None:
    """The outermost place in the emitted file: the kernel's own line, not that of a function that it calls."""
    return next((p for p in reversed(places) if p.file == file), places[0] if places else None)
