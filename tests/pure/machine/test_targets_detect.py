"""Detection against made-up systems, and measured figures as far as arithmetic goes."""

import pytest

from autosched.machine import peaks
from autosched.machine.catalogue import load_target, target_yaml
from autosched.machine.detect import ASSUMED, caches, detect, usable_cpus
from autosched.machine.features import llvm_name, our_name
from autosched.machine.peaks import Peaks, measure_peaks, with_peaks
from autosched.machine.spec import target_from_yaml


def cache_folder(root, index, kind, level, size, shared):
    folder = root / "cpu0" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    parts = {"type": kind, "level": level, "size": size, "shared_cpu_list": shared, "coherency_line_size": 64}
    for name, text in parts.items():
        (folder / name).write_text(f"{text}\n")


@pytest.fixture
def system(tmp_path):
    cache_folder(tmp_path, 0, "Data", 1, "32K", "0")
    cache_folder(tmp_path, 1, "Instruction", 1, "64K", "0")
    cache_folder(tmp_path, 2, "Unified", 2, "512K", "0,4")
    cache_folder(tmp_path, 3, "Unified", 3, "16M", "0-3,8-11")
    frequency = tmp_path / "cpu0" / "cpufreq"
    frequency.mkdir()
    (frequency / "cpuinfo_max_freq").write_text("2500000\n")
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("model name\t: Toy 9000\ncpu family\t: 6\ncpu MHz\t\t: 800.0\n\nmodel name\t: other\n")
    return tmp_path, cpuinfo


def test_what_the_system_says_is_taken(system):
    root, cpuinfo = system
    target = detect(root, cpuinfo)
    assert target.summary == "Toy 9000 (cpu family 6)"
    assert target.clock_hz == 2.5e9
    sizes = {m.name: (m.bytes, m.shared_by) for m in target.memories}
    assert sizes["L1"] == (32 << 10, "core")
    assert sizes["L2"] == (512 << 10, "device")
    assert sizes["L3"] == (16 << 20, "device")
    assert target.cores == len(usable_cpus())
    assert target.sources["memories.L1.bytes"] == "sysfs"


def test_what_it_does_not_say_is_assumed_and_said(tmp_path):
    target = detect(tmp_path / "nothing", tmp_path / "none")
    assert caches(tmp_path / "nothing") == ()
    assert [m.name for m in target.memories] == ["registers", "L1", "L2", "L3", "DRAM"]
    assert target.sources["clock"] == target.sources["memories.L2.bytes"] == ASSUMED


def test_damaged_system_files_are_no_error(system):
    root, cpuinfo = system
    (root / "cpu0" / "cache" / "index2" / "size").write_text("many\n")
    (root / "cpu0" / "cpufreq" / "cpuinfo_max_freq").write_text("\n")
    target = detect(root, cpuinfo)
    assert "L2" not in {m.name for m in target.memories}
    assert target.clock_hz == 8e8


def test_this_machine_reads_back_from_its_yaml():
    target = load_target("native")
    again = target_from_yaml(target_yaml(target), "native.yaml")
    assert (again.features, again.memories, again.compiler) == (target.features, target.memories, target.compiler)


def test_the_version_stays_when_figures_are_measured(system):
    target = detect(*system)
    peaks = Peaks(3e9, {"x86/fma": 2.0}, {}, {"L1": 1e11, "DRAM": 2e10}, {"L1": 2e11, "DRAM": 3e10}, vectors=3.0)
    measured = with_peaks(target, peaks)
    assert measured.version == target.version == detect(*system).version
    assert measured.rates["x86/fma"] == 2.0
    assert measured.rates["vector"] == 3.0
    assert target_from_yaml(target_yaml(measured), "native.yaml").rates["vector"] == 3.0
    assert measured.memory("L1").bandwidth_bytes_per_s == 1e11  # of one core
    assert measured.memory("DRAM").bandwidth_bytes_per_s == 3e10  # of all
    assert measured.memory("DRAM").core_bandwidth_bytes_per_s == 2e10
    assert target_from_yaml(target_yaml(measured), "native.yaml").memories == measured.memories
    assert "measured" in measured.sources["clock"]
    before, after = target.memory("L2").latency_s, measured.memory("L2").latency_s
    assert before * target.clock_hz == pytest.approx(after * 3e9)  # the same cycles


def test_other_machines_have_other_versions(system):
    root, cpuinfo = system
    version = detect(root, cpuinfo).version
    cpuinfo.write_text("model name\t: Toy 9001\n")
    assert detect(root, cpuinfo).version != version


def test_arm_features_are_those_of_the_intrinsic_files():
    reported = ["neon", "fullfp16", "dotprod", "rdm", "i8mm", "bf16", "fp-armv8"]  # as LLVM names them
    assert load_target("arm-neoverse-v1").features <= {our_name(f) for f in reported}


@pytest.mark.parametrize(
    "name", ["avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "sse4_2", "asimddp"]
)
def test_feature_names_go_both_ways(name):
    assert our_name(llvm_name(name)) == name


@pytest.mark.parametrize("held_up", [(), (0,), (1,), (0, 7), (3, 4, 5, 6)])
def test_a_run_that_a_neighbour_holds_up_does_not_decide_how_long_runs_are(held_up):
    """A call costs a microsecond besides, which was all that runs saw where one of 5 ms for nothing had sized them."""
    runs = []

    def took(call, times):
        runs.append(times)
        return 1e-6 + times * 1e-8 + (5e-3 if len(runs) - 1 in held_up else 0.0)

    found = peaks._best(lambda times: None, 16384.0, peaks.EFFORTS["quick"], took=took)
    assert found == pytest.approx(16384.0 / 1e-8, rel=0.01)
    assert len(runs) < 25


@pytest.mark.slow
def test_how_many_vector_operations_a_core_begins_is_measured_beside_the_bandwidths():
    target = load_target("native")
    assert measure_peaks(target).vectors > 0.0
    assert measure_peaks(target, bandwidth=False).vectors == 0.0
