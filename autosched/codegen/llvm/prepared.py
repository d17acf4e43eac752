"""Texts of what `prepare` has: many candidates of a search pack the same constants alike, and to see that is quicker
than to print them."""

from __future__ import annotations

from collections.abc import Callable

from autosched.codegen.llvm.print_cache import PrintCache
from autosched.codegen.tree.kernel import Kernel
from autosched.codegen.tree.uses import used_buffers

KEPT = 32
"""Texts that are kept: a search packs constants in some ways."""


class Prepared:
    """Texts by all that printing reads of a kernel: equal statements on equal buffers are one text."""

    def __init__(self) -> None:
        self.texts = PrintCache(KEPT)

    def of(self, kernel: Kernel, text: Callable[[], str]) -> str:
        """The text of what the kernel prepares, which `text` prints."""
        named = {b for f in kernel.prepare for b in (*f.buffers, *used_buffers(f.body))}
        buffers = tuple(b for name, b in kernel.buffers.items() if name in named)
        formulas = tuple(kernel.formulas.items())
        key = kernel.prepare, buffers, formulas, kernel.threads, kernel.isa, kernel.vector_bytes
        return self.texts.of(key, text)  # calls of instructions have no hash
