"""The build process, measured peaks, their cache, the registry and the doctor."""

import json
import os
import pickle
import platform
import signal
from pathlib import Path

import numpy as np
import pytest
from support.plug_ins import PlugIn

from autosched.device import registry
from autosched.device.cpu.build import build_all
from autosched.device.cpu.builder import Builder, BuildError
from autosched.device.cpu.device import CpuDevice
from autosched.device.cpu.native_target import native_target
from autosched.device.cpu.remote_build import BuildRequest
from autosched.device.doctor import diagnose
from autosched.device.protocol import Detected
from autosched.errors import MissingError, PluginError, UnknownNameError, UsageError
from autosched.ir import resolve
from autosched.machine.catalogue import load_target
from autosched.machine.host import host_features
from autosched.machine.probes import issue_loop
from autosched.machine.target import Target
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.candidate import Candidate
from autosched.tiling.planner.make_plans import make_plans

X86 = platform.machine().lower() in ("x86_64", "amd64")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="child processes need POSIX")
FINE = "define void @main() {\n  ret void\n}"
# AVX-512 on a CPU named as without: LLVM ends its process.
FATAL = """
declare <16 x float> @llvm.x86.avx512.rcp14.ps.512(<16 x float>, <16 x float>, i16)
define void @main(ptr %p) {
  %a = load <16 x float>, ptr %p
  %b = call <16 x float> @llvm.x86.avx512.rcp14.ps.512(<16 x float> %a, <16 x float> %a, i16 -1)
  store <16 x float> %b, ptr %p
  ret void
}
"""


@pytest.fixture(scope="module")
def builder():
    found = Builder()
    yield found
    found.close()


def test_builds_after_failures_of_all_kinds(builder):
    assert builder.compile(FINE)
    with pytest.raises(BuildError, match="expected"):
        builder.compile("define void @main() {\n  ret int\n}")
    assert builder.compile(FINE)
    if X86:
        with pytest.raises(BuildError, match="LLVM ERROR"):
            builder.compile(FATAL, "x86-64", "")
        assert builder.compile(FINE)
    os.kill(builder.process.pid, signal.SIGKILL)
    assert builder.compile(FINE)


def test_a_build_is_begun_and_finished_later(builder):
    fine = builder.compile(FINE)
    builder.begin((FINE,))
    assert builder.finish() == (fine,)
    builder.begin(("define void @main() {\n  ret int\n}",))
    with pytest.raises(BuildError, match="expected"):
        builder.finish()
    builder.begin((FINE,))
    os.kill(builder.process.pid, signal.SIGKILL)
    assert builder.finish() == (fine,)
    os.kill(builder.process.pid, signal.SIGKILL)
    builder.begin((FINE, FINE))
    assert builder.finish() == (fine, fine)
    builder.begin(("no text for LLVM",))
    builder.give_up()
    assert builder.compile(FINE) == fine, "not the answer to what was given up"


@pytest.fixture(scope="module")
def instructions():
    names = [n for n in Catalogue.builtin() if n.startswith(("x86/", "portable/mac.f32"))]
    found = [i for n in names if (i := Catalogue.builtin()[n]).requires <= host_features()]
    return [i for i in found if i.kind != "function"]  # which no machine code stands for


@pytest.mark.slow
@pytest.mark.skipif(not X86, reason="issue rates are measured on x86-64")
def test_peaks_are_measured_and_cached(instructions, tmp_path):
    cache = tmp_path / "below" / "peaks.json"
    chosen = instructions[:2]
    target, peaks = native_target(chosen, cache=cache)
    assert set(peaks.rates) | set(peaks.skipped) == {i.name for i in chosen}
    assert 2e8 < target.clock_hz < 1e10
    for name, rate in peaks.rates.items():
        assert 0.01 < rate < 16  # issues a cycle: no CPU does more
        assert target.rates[name] == rate
    assert set(peaks.bandwidth_all) == {m.name for m in target.memories if m.name != "registers"}
    assert all(v > 1e8 for v in peaks.bandwidth_all.values())
    again, cached = native_target(chosen, cache=cache)
    assert (again, cached) == (target, peaks)
    more, wider = native_target(instructions[:3], cache=cache)
    assert set(wider.rates) >= set(peaks.rates)
    assert more.clock_hz == target.clock_hz
    stored = json.loads(cache.read_text())
    for damage in ("", "{", "[]", json.dumps(stored | {"machine": "another"}), json.dumps(stored | {"peaks": {}})):
        cache.write_text(damage)
        _, fresh = native_target([], cache=cache)
        assert fresh.seconds > 0
        assert json.loads(cache.read_text())["machine"] == target.version


def test_an_effort_that_is_none():
    with pytest.raises(UsageError):
        native_target([], effort="heroic")


@pytest.mark.skipif(not X86, reason="assembly operands are x86's")
def test_probes_of_all_instructions_compile(builder, instructions):
    """Those of the whole catalogue that this machine has: LLVM accepts each probe, or it is refused before."""
    built = 0
    for intrinsic in instructions:
        try:
            text, issues = issue_loop(intrinsic, 16, host_features())
        except ValueError:
            continue
        assert issues >= 16
        assert builder.compile(text)
        built += 1
    assert built >= len(instructions) // 2


def test_devices_by_name():
    with registry.device("cpu") as found:
        assert found.describe()["name"] == "cpu"
    with registry.device("auto", None, None) as found:
        assert isinstance(found, CpuDevice)
    with pytest.raises(UnknownNameError, match="'cpu'"):
        registry.device("cpuu")
    with pytest.raises(MissingError) as missing:
        registry.device("cuda")
    assert missing.value.exit_code == 3
    with pytest.raises(UsageError, match="speed"):
        registry.device("cpu", speed=9)
    assert {"cpu", "simulator"} <= set(registry.device_names())


def test_auto_takes_a_card_that_the_target_runs_on():
    h200, threads = load_target("nvidia-h200"), {"threads": 1}
    assert registry.best_for(h200, threads) == "simulator", "a machine of the tests has no card"

    def best_for(target, **options):
        return registry.best_for(target, options, runs=lambda name, _: name == "cuda")

    assert best_for(h200, seed=1) == "cuda"
    assert best_for(h200, emulate=True) == "simulator"
    assert best_for(load_target("gemmini")) == "simulator"


def test_auto_asks_the_device_of_the_targets_backend_what_it_runs(plug_in: PlugIn) -> None:
    class Silent:
        pass

    class Choosing:
        @staticmethod
        def runs(target: Target) -> bool:
            return target.cores > 1

    class Failing:
        @staticmethod
        def runs(target: Target) -> bool:
            raise OSError("no bus")

    one, many = load_target("gemmini"), load_target("nvidia-h200")
    plug_in("autosched.devices", Silent)
    assert registry.runs_on("mine", one), "it is taken to run what its backend's targets are"
    plug_in("autosched.devices", Choosing)
    assert [registry.runs_on("mine", target) for target in (one, many)] == [False, True]
    plug_in("autosched.devices", Failing)
    with pytest.raises(PluginError, match="'mine' of package:made cannot tell what it runs: OSError: no bus"):
        registry.runs_on("mine", one)
    assert not registry.runs_on("not installed", one)


def test_a_device_of_a_package_describes_its_machine(plug_in: PlugIn) -> None:
    class Describing:
        @staticmethod
        def detect(known: Catalogue, effort: str, cache: Path | None = None) -> Detected:
            return Detected(load_target("portable"), {"effort": effort}, {})

    plug_in("autosched.devices", Describing)
    assert registry.detect("mine", Catalogue.builtin(), "quick").measured == {"effort": "quick"}
    with pytest.raises(UnknownNameError, match="unknown device 'simulator'\nhelp: known: cpu, cuda, mine"):
        registry.detect("simulator", Catalogue.builtin(), "quick")


def test_another_machines_target_is_refused():
    with pytest.raises(MissingError, match="cuda"):
        CpuDevice(target=load_target("nvidia-h200"))


def test_the_doctor_finds_what_is_needed():
    findings = diagnose()
    assert all(f.ok for f in findings if f.needed), findings
    assert all(f.ok or f.fix for f in findings)
    looked = {"python", "llvm jit", "cpu", "c compiler", "c++ compiler", "nvidia driver", "nvrtc"}
    assert looked <= {f.name for f in findings}


@pytest.mark.slow
def test_an_order_is_filled_as_a_draft_is_built(builder):
    target = load_target("portable")
    program = resolve("matmul", {"m": 12, "n": 16, "k": 8})
    (plan, *_) = make_plans(program, target, {})
    row = int(plan.space.sample(1, np.random.default_rng(5))[0])
    compiler = target.compiler
    order = BuildRequest(pickle.dumps(plan), row, {}, (), compiler.get("cpu"), compiler.get("features"))
    candidate = Candidate(plan, row)
    filled = builder.build(order).build(candidate)
    (own,) = build_all([(candidate, {}, ())], target, builder)
    assert filled.error is None
    assert (filled.payload, filled.kernel_sha) == (own.payload, own.kernel_sha)
    os.kill(builder.process.pid, signal.SIGKILL)
    assert builder.build(order).kernel_sha == own.kernel_sha  # the next process is told everything again
