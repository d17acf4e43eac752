"""C texts of a user's own instructions, checked by this machine's compiler before they are written anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from autosched.codegen.c.export.shared_library import compiler
from autosched.errors import MissingError
from autosched.machine.host import host_features
from autosched.tensorize.check.c_text import CTools
from autosched.tensorize.check.emulator import installed
from autosched.tensorize.check.own import Found, Texts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.catalogue import is_own


def c_tools() -> CTools | None:
    """This machine's C compiler; None for none."""
    try:
        return CTools(tuple(compiler()))
    except MissingError:
        return None


def doubtful(intrinsics: Iterable[Intrinsic], folder: Path | None = None) -> list[Found]:
    """What is wrong with C texts that do not come with autosched, and what could not be checked. Results are kept in
    `folder`, where one is given."""
    own = [i for i in intrinsics if "c" in i.emit and is_own(i)]
    return Texts(host_features(), c_tools(), installed(), folder).doubtful(own) if own else []
