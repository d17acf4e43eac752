"""The built-in intrinsic catalogue: YAML files, one a family; `load` adds your own."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def load(path_or_text: str | Path) -> Any:
    """Add the intrinsics of a YAML file, or of YAML text, to the catalogue; returns them."""
    from autosched.api import load_intrinsics

    return load_intrinsics(path_or_text)
