"""Where an intrinsic is written, for messages."""

from __future__ import annotations

from dataclasses import dataclass

from autosched.errors import SpecError
from autosched.yaml_lines import Document, Path


@dataclass(frozen=True)
class DocumentSource:
    """Where an intrinsic is written: the document and the path of its entry."""

    document: Document
    path: Path
    name: str  # complete

    def error(self, message: str, *keys: str | int, key: bool = False, hint: str | None = None) -> SpecError:
        return self.document.error(f"{self.name}: {message}", *self.path, *keys, key=key, hint=hint)
