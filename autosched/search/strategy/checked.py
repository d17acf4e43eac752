"""A plug-in's strategy, held to its protocol: what it proposes is legal, of this space, and new."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from traceback import extract_tb
from typing import Any

from autosched.errors import AutoschedError, PluginError
from autosched.search.protocol import Strategy
from autosched.search.space.space import SearchSpace
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate

HERE = str(Path(__file__).resolve().parents[2])
"""The package, whose lines are not a plug-in's."""


class CheckedStrategy:
    """`strategy`, which a package offers under `name`, over `space`. Raises PluginError for what it does wrong."""

    def __init__(self, name: str, strategy: Strategy, space: SearchSpace) -> None:
        for method in ("propose", "observe"):
            if not callable(getattr(strategy, method, None)):
                raise PluginError(f"the strategy {name!r} has no method {method}", hint="see docs/python.md")
        self.name, self.strategy, self._space = name, strategy, space
        self._proposed: set[str] = set()

    @property
    def batch(self) -> int | None:
        wanted: Any = getattr(self.strategy, "batch", None)
        if wanted is not None and (not isinstance(wanted, Integral) or wanted < 1):
            raise self._fault(f"its batch is {wanted!r}, and must be None or at least 1")
        return None if wanted is None else int(wanted)

    @property
    def ahead(self) -> bool:
        return bool(getattr(self.strategy, "ahead", False))

    def propose(self, n: int) -> list[Candidate]:
        try:
            found: object = self.strategy.propose(n)
        except AutoschedError:
            raise
        except Exception as error:
            raise self._fault(f"propose raised {_raised(error)}") from error
        if not isinstance(found, list | tuple):
            raise self._fault(f"propose answered a {type(found).__name__}, and should answer a list of candidates")
        if len(found) > n:
            raise self._fault(f"propose answered {len(found)} candidates where {n} were asked for")
        return [self._sound(candidate) for candidate in found]

    def observe(self, trials: Sequence[Trial]) -> None:
        self._proposed.update(trial.key for trial in trials)
        try:
            self.strategy.observe(trials)
        except AutoschedError:
            raise
        except Exception as error:
            raise self._fault(f"observe raised {_raised(error)}") from error

    def _sound(self, candidate: object) -> Candidate:
        if not isinstance(candidate, Candidate):
            raise self._fault(f"it proposed a {type(candidate).__name__}, which is no Candidate")
        number = self._space.number.get(candidate.plan.name)
        if number is None or self._space.plans[number].plan is not candidate.plan:
            raise self._fault(f"it proposed the plan {candidate.plan.name!r}, which is not one of this study")
        space, row = candidate.plan.space, candidate.row
        what = f"it proposed row {row!r} of {candidate.plan.name!r}"
        if isinstance(row, bool) or not isinstance(row, Integral) or not 0 <= row < space.size:
            raise self._fault(f"{what}, which has rows 0 to {space.size - 1}")
        if broken := space.why_not(int(row)):
            raise self._fault(f"{what}, which is not legal: {'; '.join(broken)}")
        if candidate.key in self._proposed:
            raise self._fault(f"{what} twice")
        self._proposed.add(candidate.key)
        return candidate

    def _fault(self, what: str) -> PluginError:
        return PluginError(f"the strategy {self.name!r} is at fault: {what}")


def _raised(error: Exception) -> str:
    """An error of a plug-in's, with the line of its own code that led there."""
    own = [f for f in extract_tb(error.__traceback__) if not f.filename.startswith(HERE)]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"
