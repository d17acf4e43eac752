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
    """Of tests marked `sampled(n)`, n cases spread over the list stay fast, of those marked `sampled("id", …)` the ones
    with these ids; the others are slow. A case that is asked for alone stays fast."""
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for group in cases.values():
        mark = group[0].get_closest_marker("sampled")
        assert mark is not None
        fast = _named(group, mark.args) or _spread(group, mark.args)
        for item in group:
            if item not in fast:
                item.add_marker(pytest.mark.slow)


def _named(group: list[pytest.Item], ids: tuple[object, ...]) -> list[pytest.Item]:
    return [item for item in group if item.nodeid.partition("[")[2].removesuffix("]") in ids]


def _spread(group: list[pytest.Item], asked: tuple[object, ...]) -> list[pytest.Item]:
    count = asked[0] if isinstance(asked[0], int) else len(group)
    kept = min(count, len(group))
    return [group[i * len(group) // kept] for i in range(kept)]
