"""Addresses of code as lines, by the debug information of the module."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from autosched.codegen.cuda.emulation.errors import SourceLine

_LINE = re.compile(r"^(?P<file>.*):(?P<line>\d+)(?: \(discriminator \d+\))?$")


def places(library: Path, address: int) -> tuple[SourceLine, ...]:
    """Where the call that returns to `address` stands, and what it was inlined into; () where nobody knows."""
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    if tool is None or not address:
        return ()
    command = [tool, "-i", "-e", str(library), hex(address - 1)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = []
    for line in said.splitlines():
        match = _LINE.match(line)
        if match and match["line"] != "0":
            path = Path(match["file"])
            found.append(SourceLine(path.name, int(match["line"])))
    return tuple(found)
