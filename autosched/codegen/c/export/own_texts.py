"""C texts of a user's own instructions, checked by this machine's compiler before they are written anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from autosched.codegen.c.export.shared_library import compiler
from autosched.codegen.tree.kernel import Kernel
from autosched.errors import MissingError
from autosched.machine.host import host_features
from autosched.machine.target import Target
from autosched.tensorize.check.c_text import CTools
from autosched.tensorize.check.emulator import installed
from autosched.tensorize.check.own import Found, Texts, refuse_wrong
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


def check_texts(kernel: Kernel, target: Target, measured: bool, folder: Path | None = None) -> Iterator[str]:
    """SpecError for a C text in the kernel that is wrong; a line for each that could not be checked. The device that
    ran a kernel ran other texts, so it matters not whether it was `measured`."""
    for line in refuse_wrong(doubtful(kernel.intrinsics, folder)):
        yield f"{line}; --self-test writes a program that checks the whole kernel"
