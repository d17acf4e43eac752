"""Packages that only some options need, imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from autosched.errors import MissingError


def needed(module: str, extra: str, what: str) -> Any:
    """The module. Raises MissingError, saying `what` needs it and which extra of autosched brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        hint = f"pip install 'autosched[{extra}]'"
        raise MissingError(f"{what} needs {module.split('.')[0]}, which does not load: {error}", hint=hint) from None
