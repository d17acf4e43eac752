"""Text to syntax tree, without ever running it, and errors that point into the text.

`ast` parses; nothing is compiled, imported or evaluated. Limits on length and nesting come first, so that hostile input
ends in a `ProgramError` instead of a deep recursion.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from functools import cached_property

from autosched.errors import Location, ProgramError

MAX_CHARACTERS = 1_000_000
"""Longer texts are refused: the largest program people write has a few thousand characters."""
MAX_DEPTH = 100
"""Nesting of the syntax tree; every later pass recurses over it, and Python allows about a thousand frames."""
_SHOWN = 200


@dataclass(frozen=True)
class Source:
    """A text with its file name; `first_line` is the number of its first line in the file that it came from."""

    text: str
    filename: str = "<text>"
    first_line: int = 1

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    def location(self, node: ast.AST) -> Location:
        """Where `node` stands."""
        return self.place(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))

    def place(self, line: int, byte_offset: int) -> Location:
        """The location of a line (from 1) and a UTF-8 offset (from 0), which is what `ast` counts in."""
        text = self._lines[line - 1].rstrip("\r\f") if 0 < line <= len(self._lines) else ""
        column = len(text.encode("utf-8", "replace")[:byte_offset].decode("utf-8", "replace")) + 1
        if len(text) > _SHOWN:
            text = text[:_SHOWN] if column <= _SHOWN else ""
        return Location(self.filename, line + self.first_line - 1, column, text)

    def error(self, node: ast.AST, message: str, hint: str | None = None) -> ProgramError:
        """The error to raise for something wrong at `node`."""
        return ProgramError(message, hint=hint, location=self.location(node))

    def tree(self) -> ast.Module:
        """The syntax tree; ProgramError where the text is no Python, too long or nested too deeply."""
        if not isinstance(self.text, str):
            raise ProgramError(
                f"a program is a text, not {type(self.text).__name__}", hint="decode bytes: text.decode('utf-8')"
            )
        if len(self.text) > MAX_CHARACTERS:
            raise ProgramError(
                f"the program has {len(self.text):,} characters; at most {MAX_CHARACTERS:,} are read",
                location=Location(self.filename, self.first_line),
            )
        if "\0" in self.text:
            line = self.text[: self.text.index("\0")].count("\n")
            raise ProgramError(
                "the program holds a null character", location=Location(self.filename, line + self.first_line)
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(self.text, self.filename)
        except SyntaxError as e:
            where = self.place(e.lineno or 1, max(0, (e.offset or 1) - 1))
            raise ProgramError(f"not valid syntax: {e.msg}", location=where) from None
        except (RecursionError, MemoryError):
            raise self._too_deep(1) from None
        except (ValueError, OverflowError) as e:
            raise ProgramError(f"not valid text: {e}", location=Location(self.filename, self.first_line)) from None
        self._check_depth(tree)
        return tree

    def _too_deep(self, line: int) -> ProgramError:
        return ProgramError(
            f"the program is nested deeper than {MAX_DEPTH} levels",
            hint="name parts of long expressions: x = …",
            location=self.place(line, 0),
        )

    def _check_depth(self, tree: ast.AST) -> None:
        level: list[ast.AST] = [tree]
        depth = 0
        while level:
            depth += 1
            if depth > MAX_DEPTH:
                raise self._too_deep(getattr(level[0], "lineno", 1))
            level = [child for node in level for child in ast.iter_child_nodes(node)]
