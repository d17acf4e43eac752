"""What a bare `import autosched` gives: functions, errors, and the room of devices under its function's name."""

import subprocess
import sys

import pytest

LINES = (
    "assert autosched.errors.UsageError",
    "assert autosched.device('simulator').describe()['name'] == 'simulator'",
    "from autosched.device.protocol import Build; assert callable(autosched.device) and Build",
    "from autosched.device import registry; assert callable(autosched.device) and registry.device_names()",
    "import autosched.device.registry; assert callable(autosched.device)",
)


@pytest.mark.parametrize("line", LINES)
def test_a_bare_import_is_enough(line: str) -> None:
    subprocess.run([sys.executable, "-c", f"import autosched\n{line}"], check=True)
