"""Heads and bodies of loops and conditions, as C and CUDA have them."""

from __future__ import annotations

from collections.abc import Iterator


def loop_head(kind: str, var: str, upper: str | int, lower: str = "0", step: int = 1) -> str:
    """The head of a loop whose variable is of the type `kind`.

    >>> loop_head("int", "i", 16)
    'for (int i = 0; i < 16; ++i)'
    """
    advance = f"++{var}" if step == 1 else f"{var} += {step}"
    return f"for ({kind} {var} = {lower}; {var} < {upper}; {advance})"


def under(head: str, lines: list[str], indent: str, most: int) -> Iterator[str]:
    """A head and its body in braces; on one line if the body is one line and both have fewer than `most` characters."""
    if len(lines) == 1 and len(head) + len(lines[0]) < most:
        yield f"{head} {lines[0]}"
        return
    yield f"{head} {{"
    yield from (indent + line for line in lines)
    yield "}"
