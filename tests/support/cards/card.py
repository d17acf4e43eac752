"""Whether an NVIDIA GPU is here, asked in a process of its own: a context must not outlive the question."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

_LOOK = """
from autosched.device.cuda.driver import Card
from autosched.errors import MissingError
try:
    print(Card().facts().arch)
except MissingError as error:
    print(error.message)
"""


@cache
def card() -> tuple[str | None, str]:
    """The card's architecture (`sm_90`), or None and why there is none."""
    done = subprocess.run([sys.executable, "-c", _LOOK], capture_output=True, text=True, check=False)
    said = (done.stdout or done.stderr or "no answer").strip().splitlines()[-1]
    return (said, "") if said.startswith("sm_") else (None, said)
