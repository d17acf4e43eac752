"""How the proof of one mapping ends without one."""

from __future__ import annotations

from dataclasses import dataclass

from autosched.tensorize.match_types import Reason


@dataclass(frozen=True)
class Unproved:
    """An obligation that met a solver's limit."""

    statement: str


class Refused(Exception):
    """Ends the proof of one mapping; `answer` is why. `whatever_axes`: it refuses the roles under every axis map."""

    __match_args__ = ("answer",)

    def __init__(self, answer: Reason | Unproved, whatever_axes: bool = False) -> None:
        super().__init__()
        self.answer = answer
        self.whatever_axes = whatever_axes
