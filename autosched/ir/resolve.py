"""What a person names on the command line, as a program: a file, a built-in workload, or an einsum string."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from autosched.errors import UnknownNameError, UsageError
from autosched.given import checked
from autosched.ir.einsum import einsum
from autosched.ir.parser import Define, load
from autosched.ir.program import Program
from autosched.ir.workload import workload, workload_names

SPEC = "give path.py, path.py:function, a workload's name, or an einsum string"


@checked()
def resolve(spec: str, defines: Mapping[str, Define] | None = None) -> Program:
    """The program that `spec` names: `path.py`, `path.py:function`, a workload's name, or `"mk,kn->mn"`.

    `defines` are sizes and dtypes, as `-D` gives them. UsageError (or a subclass) where `spec` is none of these.
    """
    given = dict(defines or {})
    text = spec.strip()
    if not text:
        raise UsageError("no program is named", hint=SPEC)
    if "->" in text or ("," in text and "/" not in text and ".py" not in text):
        return einsum(text, **given)
    if text in workload_names():
        return workload(text, **given)
    if text.endswith(".py") or ".py:" in text or "/" in text or _exists(text, file=True):
        return load(text, **given)
    if "." in text or _exists(text):
        raise UsageError(f"{text!r} is no program" + (", but a folder" if _exists(text) else ""), hint=SPEC)
    names = workload_names()
    raise UnknownNameError("workload", text, names, most=len(names))


def _exists(text: str, *, file: bool = False) -> bool:
    try:
        return Path(text).is_file() if file else Path(text).exists()
    except (OSError, ValueError):
        return False
