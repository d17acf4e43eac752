"""The text of one LLVM function under construction: names, blocks, scopes and declarations.

A scope is a loop body (scope 0 is the function's entry). Address arithmetic, conditions and masks are pure, so they are
printed once at the head of the outermost scope that defines their variables: loop-invariant code motion by
construction, which is why no middle-end pass is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from autosched.codegen import workarounds

Chunk = list[Any]  # lines and nested chunks


@dataclass
class Declarations:
    """The external functions and the memory constants of a module, each declared once."""

    lines: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)

    def need(self, result: str, name: str, *arguments: str) -> str:
        """Declare `result @name(arguments)` and return `@name`."""
        if name not in self.lines:
            self.lines[name] = f"declare {result} @{name}({', '.join(arguments)})"
        return f"@{name}"

    def number(self, text: str, align: int) -> str:
        """The address of a constant (`text`: type and value) in memory that LLVM assumes to change: it is loaded where
        it is used, not before a loop, so no register has to keep it."""
        names = self.numbers
        if text not in names:
            names[text] = f"@number.{len(names)}"
            self.lines[names[text]] = f"{names[text]} = {workarounds.NUMBER_IN_MEMORY.text} {text}, align {align}"
        return names[text]


class Emitter:
    """Lines of one function. `depth` gives the scope in which a pure SSA value is available."""

    def __init__(self, declarations: Declarations) -> None:
        self.declarations = declarations
        self.entry: Chunk = []
        self.lines: Chunk = [self.entry]
        self.heads: list[Chunk] = [self.entry]
        self.caches: list[dict[Any, Any]] = [{}]
        self.depth: dict[str, int] = {}
        self.block = "start.0"
        self._count = 0

    def fresh(self, hint: str = "t") -> str:
        """An unused SSA name."""
        self._count += 1
        return f"%{hint}.{self._count}"

    def skip_names_of(self, other: Emitter) -> None:
        """Avoid the names that `other` has used so far: its values may become this function's arguments."""
        self._count = other._count

    def label(self, hint: str) -> str:
        """An unused block name."""
        self._count += 1
        return f"{hint}.{self._count}"

    def line(self, text: str) -> None:
        self.lines.append(text)

    def let(self, text: str, hint: str = "t") -> str:
        """`%name = text` at the current place; returns the name."""
        self._count += 1
        name = f"%{hint}.{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def pure(self, key: Any, depth: int, text: str, hint: str = "x") -> str:
        """A pure instruction at the head of scope `depth`, printed once for each `key` there."""
        cache = self.caches[depth]
        found: str | None = cache.get(key)
        if found is None:
            self._count += 1
            found = f"%{hint}.{self._count}"
            self.heads[depth].append(f"  {found} = {text}")
            self.depth[found] = depth
            cache[key] = found
        return found

    def depth_of(self, *names: str) -> int:
        """The innermost scope among those of `names` (constants belong to scope 0)."""
        depth, innermost = self.depth, 0
        for name in names:
            here = depth.get(name, 0)
            if here > innermost:
                innermost = here
        return innermost

    def start(self, label: str) -> None:
        """Begin a block; the previous one must have ended with a terminator."""
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def branch_if(self, condition: str, then: str, other: str) -> None:
        self.lines.append(f"  br i1 {condition}, label %{then}, label %{other}")

    def enter(self) -> int:
        """Open a scope at the current place; returns its depth."""
        head: Chunk = []
        self.lines.append(head)
        self.heads.append(head)
        self.caches.append({})
        return len(self.heads) - 1

    def leave(self) -> None:
        self.heads.pop()
        self.caches.pop()

    def text(self) -> str:
        return "\n".join(flatten(self.lines))


def flatten(chunk: Chunk) -> Iterator[str]:
    """The lines of nested chunks, in order."""
    for part in chunk:
        if isinstance(part, str):
            yield part
        else:
            yield from flatten(part)
