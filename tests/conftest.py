"""Makes `tests/conformance` importable for tests in any folder: `from conformance.store import StoreConformance`; and
`benchmarks`, which no installation holds. Libraries get one thread, as in the command: the tests run side by side.

The tests start hundreds of processes. Python keeps what it compiles, even where it is told not to
(`PYTHONDONTWRITEBYTECODE`): else each of them compiles hundreds of files again, for seconds.

Thousands of tests live in one process: a collector that looks at all of them time and again takes a tenth of its time.
"""

import gc
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from autosched.cli.entry import ONE_THREAD

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ |= ONE_THREAD | os.environ

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1]))

pytest_plugins = ("support.plug_ins", "support.process_state")  # fixtures for all tests

gc.set_threshold(50_000)

# A busy machine is no mistake in what is tested.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of tests marked `sampled(n)`, n cases spread over the list stay fast; the others are slow."""
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for group in cases.values():
        mark = group[0].get_closest_marker("sampled")
        assert mark is not None
        kept = min(mark.args[0], len(group))
        fast = {i * len(group) // kept for i in range(kept)}
        for i, item in enumerate(group):
            if i not in fast:
                item.add_marker(pytest.mark.slow)
