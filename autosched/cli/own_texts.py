"""C texts of a user's own instructions: none that is wrong is written to a file, and what was not checked is said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from platformdirs import user_cache_dir

from autosched.cli.output import talk
from autosched.codegen.c.export.own_texts import doubtful
from autosched.tensorize.check.own import refuse_wrong
from autosched.tensorize.intrinsic import Intrinsic


def refuse_wrong_c(intrinsics: Iterable[Intrinsic]) -> None:
    """SpecError for a C text that is wrong; a line on stderr for each that could not be checked."""
    for line in refuse_wrong(doubtful(intrinsics, _folder())):
        talk().print(f"warning  {line}; --self-test writes a program that checks the whole kernel", markup=False)


def tell_wrong_c(intrinsics: Iterable[Intrinsic]) -> None:
    """A line on stderr for each C text that is wrong or could not be checked."""
    for found in doubtful(intrinsics, _folder()):
        talk().print(f"warning  {found}", markup=False)


def _folder() -> Path:
    return Path(user_cache_dir("autosched")) / "texts"
