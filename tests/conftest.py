"""Makes `tests/conformance` importable for tests in any folder: `from conformance.store import StoreConformance`; and
`benchmarks`, which no installation holds. Libraries get one thread, as in the command: the tests run side by side.

Thousands of tests live in one process: a collector that looks at all of them time and again takes a tenth of its time.
"""

import gc
import os
import sys
from pathlib import Path

from autosched.cli.entry import ONE_THREAD

os.environ |= ONE_THREAD | os.environ

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1]))

gc.set_threshold(50_000)


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end."""
    gc.collect()
    gc.freeze()
