"""What was proved of addresses, kept for the process: many stages differ in nothing that such a question looks at.

    C[i, j] is another element for every other i, j        of products of f32, of u8, of what an adapter widens

A question is all that its answer follows from, without the names of tensors. Only what was decided is kept, and no
limit that was met.
"""

from __future__ import annotations

from collections.abc import Hashable

from autosched.logic.questions import is_written

MOST = 1 << 14
_ANSWERS: dict[Hashable, bool] = {}


def answer_before(question: Hashable) -> bool | None:
    """Whether it holds; None where it was not decided yet, or where questions are written to a folder."""
    return None if is_written() else _ANSWERS.get(question)


def remember(question: Hashable, holds: bool) -> None:
    """Keeps an answer, in place of the oldest one where there are many."""
    if len(_ANSWERS) >= MOST:
        _ANSWERS.pop(next(iter(_ANSWERS)), None)
    _ANSWERS[question] = holds
