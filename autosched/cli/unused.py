"""Names the user's own instructions that the target lacks: a search leaves them out silently."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from autosched.cli.output import talk
from autosched.machine.target import Target
from autosched.tensorize.spec.catalogue import Catalogue


def tell_unused(known: Catalogue, paths: Sequence[str] | None, machine: Target) -> None:
    """A line on stderr for each instruction in the files of `--intrinsics` that `machine` cannot use."""
    given = [Path(os.path.realpath(Path(p).expanduser())) for p in paths or ()]
    for name in known if given else ():
        if name in Catalogue.builtin():
            continue
        own = known[name]
        file = Path(os.path.realpath(own.path))
        if not any(file == path or path in file.parents for path in given):
            continue
        if own.isa != machine.isa and not own.portable:
            talk().print(f"{name} is not used: {machine.name} is {machine.isa}", markup=False)
        elif not machine.has(own.requires):
            missing = ", ".join(sorted(own.requires - machine.features))
            talk().print(f"{name} is not used: it needs {missing}, which {machine.name} lacks", markup=False)
