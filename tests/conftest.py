"""Makes `tests/conformance` importable for tests in any folder: `from conformance.store import StoreConformance`; and
`benchmarks`, which no installation holds. Libraries get one thread, as in the command: the tests run side by side."""

import os
import sys
from pathlib import Path

from autosched.cli.entry import ONE_THREAD

os.environ |= ONE_THREAD | os.environ

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1]))
