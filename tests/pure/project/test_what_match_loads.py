"""A match is answered in about a second, start included: the command loads nothing of the rooms that tune."""

from __future__ import annotations

import subprocess
import sys


def test_the_command_loads_no_search_and_no_printers() -> None:
    code = "import sys, autosched.cli.commands.match; print(*(m for m in sys.modules if m.startswith('autosched.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = {m.split(".")[1] for m in done.stdout.split()}
    assert "tensorize" in rooms
    assert not rooms & {"search", "tiling", "codegen", "costmodel"}
