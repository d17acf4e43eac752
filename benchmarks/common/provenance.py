"""With which code results were made, and whether the code that decides them is still the same.

A result of strategies depends on a few rooms. Their digest leaves out comments, docstrings and empty lines, so that
words may change; where anything else has, a page says so beside the figures.
"""

from __future__ import annotations

import ast
import hashlib
import io
import subprocess
import tokenize
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from autosched.version import __version__

Made: TypeAlias = Mapping[str, str]
ROOT = Path(__file__).resolve().parents[2]
SEARCH = (
    "autosched/search/strategy", "autosched/search/external", "autosched/search/space", "autosched/costmodel/learned",
    "autosched/costmodel/features.py",
)  # fmt: skip
"""What decides which rows a strategy tries."""
MODELS = (
    "autosched/costmodel", "autosched/search/strategy", "autosched/search/evaluate/model_quality.py",
    "autosched/search/evaluate/training_rows.py", "autosched/search/evaluate/shared_rows.py",
)  # fmt: skip
"""What decides how models are judged; the clock is in it."""
INTERVALS = ("autosched/report/statistics.py",)


def made(rooms: Sequence[str], root: Path = ROOT) -> dict[str, str]:
    """What results state of the code that makes them: version, revision (with `+` where files differ from it) and the
    digest of the rooms."""
    return {"version": __version__, "revision": revision(root), "digest": digest(rooms, root)}


def replayed(
    before: Made, rooms: Sequence[str], runs: int, otherwise: Sequence[str] = (), root: Path = ROOT
) -> dict[str, str]:
    """What results state once so many of their runs were played again with today's code, and these came out
    otherwise."""
    now = made(rooms, root)
    again = {"replayed": str(runs), "replayed_revision": now["revision"], "replayed_digest": now["digest"]}
    return {**before, **again, "replayed_otherwise": "\n".join(otherwise)}


def revision(root: Path = ROOT) -> str:
    """Of the repository; empty where there is none."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=8", "--exclude=*"],
            cwd=root, capture_output=True, text=True, check=True, timeout=20,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def digest(rooms: Sequence[str], root: Path = ROOT) -> str:
    """Of the code in these files and folders, whatever its comments say."""
    found = hashlib.sha256()
    for room in rooms:
        place = root / room
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            found.update(f"{file.relative_to(root).as_posix()}\n{bare(file.read_text())}\n".encode())
    return found.hexdigest()[:16]


def bare(text: str) -> str:
    """The lines of a module without comments, docstrings and what is empty.

    >>> bare('def f():\\n    \"\"\"Says.\"\"\"\\n\\n    return 1  # one\\n')
    'def f():\\n    return 1'
    """
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


_MEANS = "They hold for that revision; today's code may give others, and the command above makes them anew."
"""What it is to a reader that figures are stale."""


def said(results: Mapping[str, Any], rooms: Sequence[str], root: Path = ROOT) -> str:
    """The line of a page below figures: of which code they are, and whether it has changed since."""
    known = results.get("made") or {}
    where = f"version {known.get('version') or 'unknown'}, revision {known.get('revision') or 'unknown'}"
    if not known.get("digest"):
        return f"*Stale: these figures were made before code was noted with them ({where}). {_MEANS}*"
    today = digest(rooms, root)
    if known["digest"] != today and known.get("replayed_digest") == today:
        count, odd = int(known["replayed"]), known.get("replayed_otherwise", "")
        again = f"of {count} of these runs, drawn at random over all strategies, {count - len(odd.splitlines())}"
        now = f"came out the same with revision {known['replayed_revision']}, whose code is today's"
        besides = f" (not {', '.join(odd.splitlines())})" if odd else ""
        return f"*{'Stale: made' if odd else 'Made'} with {where}; code has changed since, and {again} {now}{besides}.*"
    if known["digest"] != today:
        return f"*Stale: code that decides these figures has changed since they were made ({where}). {_MEANS}*"
    return f"*Made with {where}; the code that decides them is the same today.*"
