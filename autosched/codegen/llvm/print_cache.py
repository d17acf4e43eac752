"""`PrintCache`: what has been printed, where many candidates of a search have a part in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable


class PrintCache:
    """So many texts, those that were printed last."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._known: dict[Hashable, tuple[object, str]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, key: Hashable, text: Callable[[], str], alive: object = None) -> str:
        """The text by this name, or else what `text` prints. What a name with an `id` in it is of is kept `alive`; by
        a name without a hash nothing is kept."""
        try:
            known = self._known.get(key)
        except TypeError:
            return text()
        if known is None:
            known = self._known[key] = alive, text()
            if len(self._known) > self._kept:
                del self._known[next(iter(self._known))]
        return known[1]
