"""Packages that only plots and tables need, imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from autosched.errors import MissingError


def extra(module: str, what: str) -> Any:
    """A module of the extra `plots`. Raises MissingError, saying `what` needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        hint = "pip install 'autosched[plots]'"
        raise MissingError(f"{what} needs {package}, which does not load: {error}", hint=hint) from None
