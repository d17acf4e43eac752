"""`PrintCache`: what has been printed, where many candidates of a search have a part in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from autosched.codegen.tree.kernel import Kernel
from autosched.codegen.tree.uses import used_buffers


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


KEPT = 32
"""Texts that are kept: a search packs constants in some ways."""


class Prepared:
    """Texts of what `prepare` has, by all that printing reads of a kernel: equal statements on equal buffers are one
    text. Many candidates of a search pack the same constants alike, and to see that is quicker than to print them."""

    def __init__(self) -> None:
        self.texts = PrintCache(KEPT)

    def of(self, kernel: Kernel, text: Callable[[], str]) -> str:
        """The text of what the kernel prepares, which `text` prints."""
        named = {b for f in kernel.prepare for b in (*f.buffers, *used_buffers(f.body))}
        buffers = tuple(b for name, b in kernel.buffers.items() if name in named)
        formulas = tuple(kernel.formulas.items())
        key = kernel.prepare, buffers, formulas, kernel.threads, kernel.isa, kernel.vector_bytes
        return self.texts.of(key, text)  # calls of instructions have no hash
