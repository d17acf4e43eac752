"""A search waits for its children to start, and every new worker for what it loads."""

import signal
import subprocess
import sys

import pytest

from autosched.device.processes.process import WorkerProcess

HEAVY = {"pydantic", "yaml", "z3", "scipy", "sklearn", "xgboost", "typer", "autosched.ir.nodes"}
"""A tenth of a second each, or on the way there."""


def loaded_by(module, also="pass"):
    text = f"import sys, {module}\n{also}\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("module", ["autosched.device.cpu.worker", "autosched.device.cpu.build_worker"])
def test_a_child_loads_little(module):
    loaded = loaded_by(module)
    assert "llvmlite" in loaded
    assert not HEAVY & loaded


@pytest.mark.slow
def test_what_prints_for_a_cpu_loads_nothing_for_gpus():
    loaded = loaded_by("autosched.device.cpu.build_worker", "import autosched.device.cpu.build_server")
    assert not {m for m in loaded if m.startswith(("autosched.codegen.lower.gpu", "autosched.codegen.cuda"))}
    assert not {"scipy", "sklearn", "typer"} & loaded


@pytest.mark.slow
def test_a_search_begins_without_what_models_learn_with():
    text = "import sys, autosched.search.tuning.tune\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
    assert "autosched.search.strategy.bayesian" in loaded
    assert not {"scipy", "sklearn", "xgboost", "pandas"} & set(loaded)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
def test_a_worker_whose_start_is_interrupted_is_started_again():
    """The answer to its start would be taken for that to the next request."""

    def interrupt(*_):
        raise KeyboardInterrupt

    worker = WorkerProcess("autosched.device.cpu.worker", ())
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            worker.ensure()
        assert worker.pid is None
    finally:
        signal.signal(signal.SIGALRM, before)
        worker.close()
