"""Texts of instructions that do not come with autosched: checked before a kernel that holds one is written or tuned.

Each text is checked once with each compiler: what was found is kept in memory, and in a folder where one is given. Only
what passed or failed is kept; why something could not be checked may be another reason next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autosched.errors import SpecError
from autosched.tensorize.check.c_text import CTools
from autosched.tensorize.check.emulator import Emulator, version_of
from autosched.tensorize.check.native import NativeRunner
from autosched.tensorize.check.verify import CheckPart, check_c, check_llvm
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.catalogue import is_own
from autosched.text_file import write_whole

KEPT = 2
"""Of what is kept: another number where checks try other values."""
_DECIDED = ("passed", "failed")


@dataclass(frozen=True)
class Found:
    """What the check of one text found. `part` has its status, and what is wrong or why it was not checked."""

    intrinsic: str
    path: str
    part: CheckPart

    @property
    def wrong(self) -> bool:
        return self.part.status == "failed"

    def __str__(self) -> str:
        said = "is wrong" if self.wrong else "was not checked"
        return f"{self.path}: the {self.part.what} of {self.intrinsic} {said}: {self.part.detail}"


@dataclass
class Texts:
    """Checks of C texts with `tools` (None: there is no compiler) for a machine of these `features`."""

    features: frozenset[str]
    tools: CTools | None
    emulators: Mapping[str, Emulator] = field(default_factory=dict)
    folder: Path | None = None
    _known: dict[str, CheckPart] = field(default_factory=dict, init=False)

    def doubtful(self, intrinsics: Iterable[Intrinsic]) -> list[Found]:
        """What is wrong with the C texts of those that are not built in, and what could not be checked."""
        own = {i.name: i for i in intrinsics if "c" in i.emit and is_own(i)}
        found = [Found(i.name, i.path, self._checked(i)) for i in own.values()]
        return [f for f in found if f.part.status != "passed"]

    def _checked(self, intrinsic: Intrinsic) -> CheckPart:
        if self.tools is None:
            return CheckPart("C text", "skipped", "no C compiler is here")
        key = self._key(intrinsic, self.tools.command)
        part = self._known.get(key) or self._read(key)
        if part is None:
            part = check_c(intrinsic, self.features, self.tools, self.emulators)
            if part.status == "failed" and not self.tools.native(self.features).works:
                return CheckPart(part.what, "skipped", f"{self.tools.command[0]} compiles nothing")
            if part.status in _DECIDED:
                self._write(key, part)
        self._known[key] = part
        return part

    def _key(self, intrinsic: Intrinsic, command: Sequence[str]) -> str:
        emulators = sorted(e.name for e in self.emulators.values())
        said = [KEPT, intrinsic.name, intrinsic.version, list(command), version_of(command), sorted(self.features)]
        return hashlib.sha256(json.dumps([*said, emulators]).encode()).hexdigest()[:32]

    def _read(self, key: str) -> CheckPart | None:
        if self.folder is None:
            return None
        try:
            said = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            part = CheckPart(str(said["what"]), str(said["status"]), str(said["detail"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return part if part.status in _DECIDED else None

    def _write(self, key: str, part: CheckPart) -> None:
        """A folder that cannot be written keeps nothing."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            said = {"what": part.what, "status": part.status, "detail": part.detail}
            write_whole(self.folder / f"{key}.json", json.dumps(said).encode())


_run_already: dict[tuple[str, str, frozenset[str]], CheckPart] = {}
"""By name and version of an intrinsic, and features of the machine: what ran in this process."""


def doubtful_llvm(intrinsics: Iterable[Intrinsic], features: frozenset[str]) -> list[Found]:
    """What is wrong with the LLVM texts of those that are not built in, and what could not be checked, on this machine
    of these `features`. Each is run once a process."""
    own = {i.name: i for i in intrinsics if "llvm" in i.emit and is_own(i)}
    parts = {name: _run_already.get((name, i.version, features)) for name, i in own.items()}
    if not all(parts.values()):
        with NativeRunner() as runner:
            for name, i in own.items():
                if parts[name] is None:
                    made = replace(check_llvm(i, features, runner), what="LLVM text")
                    parts[name] = _run_already[name, i.version, features] = made
    found = [Found(name, own[name].path, part) for name, part in parts.items() if part is not None]
    return [f for f in found if f.part.status != "passed"]


def refuse_wrong(found: Sequence[Found]) -> Iterator[str]:
    """What was not checked, as lines. SpecError for the first text that is wrong."""
    for one in found:
        if one.wrong:
            raise SpecError(str(one), hint=f"mend it; `autosched intrinsics check {one.path}` tells when it is right")
    yield from map(str, found)
