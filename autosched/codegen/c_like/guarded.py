"""Lines under a condition, as C and CUDA have them."""

from __future__ import annotations

from collections.abc import Iterator


def guarded(condition: str, lines: list[str], indent: str, most: int) -> Iterator[str]:
    """On one line where there is one and both have fewer than `most` characters."""
    if len(lines) == 1 and len(condition) + len(lines[0]) < most:
        yield f"if ({condition}) {lines[0]}"
        return
    yield f"if ({condition}) {{"
    yield from (indent + line for line in lines)
    yield "}"
