"""Target files: what is read, and how each mistake is told."""

import contextlib
import dataclasses
import json
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosched.errors import SpecError, UnknownNameError
from autosched.machine.catalogue import load_target, target_data, target_names, target_schema, target_yaml
from autosched.machine.spec import target_from_yaml
from autosched.machine.target import Memory, Target
from autosched.machine.units import UNITS, quantity, written

GOOD = """\
name: toy
isa: toy
features: [mac8]
units:
  cores: 4
  clock: {value: 500 MHz, source: datasheet page 3}
  rates: {toy/mac: 0.5 issue/cycle, ops.f16: 64 op/cycle}
memories:
  - {name: registers, bytes: 1 KiB}
  - {name: L1, bytes: 16 KiB, bandwidth: 8 B/cycle, latency: 2 cycles}
  - {name: DRAM, bytes: 64 MiB, bandwidth: 1 GB/s, latency: 100 ns, shared_by: device, line: 32 B}
limits: {vector_registers: 16}
"""


def test_figures_come_out_in_base_units():
    target = target_from_yaml(GOOD, "toy.yaml")
    assert (target.cores, target.clock_hz, target.rates) == (4, 5e8, {"toy/mac": 0.5, "ops.f16": 64.0})
    l1, dram = target.memory("L1"), target.memory("DRAM")
    assert (l1.bytes, l1.bandwidth_bytes_per_s, l1.latency_s, l1.shared_by) == (16384, 4e9, pytest.approx(4e-9), "core")
    assert (dram.latency_s, dram.line_bytes, dram.shared_by) == (pytest.approx(1e-7), 32, "device")
    assert target.limits == {"vector_registers": 16}
    assert target.sources == {"clock": "datasheet page 3"}
    assert target.has(frozenset({"mac8"}))
    assert not target.has(frozenset({"mac8", "avx"}))


def test_the_version_is_of_the_content_and_not_of_the_layout():
    spaced = GOOD.replace("cores: 4", "cores:   4  # four")
    assert target_from_yaml(spaced, "a").version == target_from_yaml(GOOD, "b").version
    assert target_from_yaml(GOOD.replace("cores: 4", "cores: 5"), "a").version != target_from_yaml(GOOD, "b").version


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        ("cores: 4", "coers: 4", 5, "unknown key 'coers'", "did you mean 'cores'"),
        ("latency: 2 cycles", "latncy: 2 cycles", 10, "unknown key 'latncy'", "did you mean 'latency'"),
        ("cores: 4", "cores: 0", 5, "cores", None),
        ("cores: 4", "cores: -4", 5, "cores", None),
        ("cores: 4", "cores: many", 5, "cores", None),
        ("500 MHz", "500", 6, "has no unit", "units: Hz"),
        ("500 MHz", "500 Mhz", 6, "unknown unit 'Mhz'", "did you mean 'MHz'"),
        ("500 MHz", "500 THz", 6, "unknown unit 'THz'", None),
        ("500 MHz", "500 KiB", 6, "unknown unit 'KiB'", "KiB measures bytes"),
        ("500 MHz", "500000 GHz", 6, "impossible", "unit"),
        ("500 MHz", "0 MHz", 6, "impossible", None),
        ("500 MHz", "-5 MHz", 6, "impossible", None),
        ("bytes: 16 KiB", "bytes: 16", 10, "has no unit", "48 KiB"),
        ("bytes: 16 KiB", "bytes: 0.3 B", 10, "whole number", None),
        ("bytes: 64 MiB", "bytes: 8 KiB", 11, "smaller than L1", "outward"),
        ("latency: 100 ns", "latency: 1 ns", 11, "sooner than L1", "outward"),
        ("name: L1", "name: registers", 10, "described twice", None),
        ("shared_by: device", "shared_by: everyone", 11, "thread, core, device", None),
        ("0.5 issue/cycle", "0.5 op/cycle", 7, "unknown unit 'op/cycle'", "operations"),
        ("64 op/cycle", "inf op/cycle", 7, "not a figure", None),
        ("isa: toy\n", "", 1, "'isa'", None),
        ("[mac8]", "[mac8, mac8]", 3, "twice", None),
        ("vector_registers: 16", "vector_registers: 1.5", 12, "must be an integer", None),
        ("name: toy", "name: [toy]", 1, "name", None),
        ("cores: 4", "cores:", 5, "cores has no value", "leave the key out"),
        ("bandwidth: 8 B/cycle", "bandwidth: null", 10, "bandwidth has no value", None),
        ("bandwidth: 8 B/cycle", "bandwidth: -8 B/cycle", 10, "impossible", None),
        ("bandwidth: 1 GB/s", "bandwidth: 1 GB/s, core_bandwidth: 2 GB/s", 11, "one core's part", None),
        ("bandwidth: 8 B/cycle", "bandwidth: 8 GB/h", 10, "unknown unit 'GB/h'", "did you mean 'GB/s'"),
        ("bandwidth: 1 GB/s, ", "", 11, "DRAM, the outermost memory, has no bandwidth", "20 GB/s"),
        ("ops.f16:", "ops.tensr.f16:", 7, "'ops.tensr.f16' names no class of operations", "did you mean 'tensor'"),
        ("ops.f16:", "ops.f17:", 7, "'ops.f17' names no class of operations", "did you mean 'f16'"),
        ("ops.f16:", "ops.:", 7, "names no class of operations", "ops.<type>"),
        ("toy/mac:", "lod:", 7, "'lod' names no instruction and no class", "did you mean 'load'"),
    ],
)
def test_mistakes_name_the_line(old, new, line, message, hint):
    assert old in GOOD
    with pytest.raises(SpecError) as caught:
        target_from_yaml(GOOD.replace(old, new), "toy.yaml")
    error = caught.value
    assert (error.location.file, error.location.line) == ("toy.yaml", line)
    assert message in error.message
    if hint:
        assert hint in (error.hint or "")


@pytest.mark.parametrize("text", ["", "3", "[1, 2]", "name: !!python/object:os.system x", "a: [", "a: 1\na: 2", "\x00"])
def test_other_texts_are_spec_errors(text):
    with pytest.raises(SpecError):
        target_from_yaml(text, "x.yaml")


@pytest.mark.slow
@given(st.text(max_size=80))
def test_no_text_escapes_as_another_error(text):
    with pytest.raises(SpecError):
        target_from_yaml(text, "x.yaml")


@given(st.text(alphabet="0123456789.eE+-_, KMGTiBHzscylenu/µ", max_size=16), st.sampled_from(sorted(UNITS)))
def test_a_figure_is_positive_or_an_error(text, dimension):
    with contextlib.suppress(SpecError):
        assert 0 < quantity(text, dimension, clock_hz=1e9) < float("inf")


@given(st.floats(1e-12, 1e18), st.sampled_from(["time", "bandwidth", "frequency"]))
def test_figures_are_written_exactly(value, dimension):
    units = [u for u, factor in UNITS[dimension].items() if factor == 1]
    every = [*UNITS[dimension], *units]
    assert quantity(written(value, dimension, *every), dimension) == value


@pytest.mark.parametrize("name", target_names())
def test_built_in_targets_load_and_read_back(name):
    target = load_target(name)
    assert target.name == name
    again = target_from_yaml(target_yaml(target), "again.yaml")
    assert dataclasses.replace(again, version="") == dataclasses.replace(target, version="")
    json.dumps(target_data(target))


@given(
    st.integers(1, 10**6),
    st.floats(1e6, 1e11),
    st.dictionaries(st.sampled_from(["x86/a", "scalar", "ops.f32"]), st.floats(1e-3, 1e6)),
    st.lists(st.integers(1, 2**40), min_size=1, max_size=4, unique=True),
)
def test_any_target_reads_back(cores, clock_hz, rates, sizes):
    memories = tuple(Memory(f"m{i}", n, n * 1.1e3, None) for i, n in enumerate(sorted(sizes)))
    target = Target("t", "x86", frozenset({"avx2"}), cores, clock_hz, memories, rates, {"vector_bytes": 32})
    again = target_from_yaml(target_yaml(target), "t.yaml")
    assert dataclasses.replace(again, version="") == target


def test_the_h200_adds_up():
    """The datasheet's 989 TFLOP/s of dense f16 and its memory, from the parts."""
    target = load_target("nvidia-h200")
    assert target.cores * target.rates["ops.tensor.f16"] * target.clock_hz == pytest.approx(989.4e12, rel=0.005)
    assert target.rates["ops.tensor.e4m3"] == 2 * target.rates["ops.tensor.f16"]
    assert target.limits["shared_bytes"] == 227 * 1024 < target.memory("shared").bytes
    assert target.sources["memories.DRAM.bandwidth"]


GPU = """\
name: toy
isa: toy
units: {cores: 4, clock: 1 GHz}
memories:
  - {name: shared, bytes: 64 KiB, bandwidth: 128 B/cycle, latency: 30 cycles}
  - {name: L2, bytes: 4 MiB, bandwidth: 512 B/cycle, latency: 250 cycles}
  - {name: DRAM, bytes: 8 GB, bandwidth: 320 GB/s, latency: 450 cycles}
limits:
  warp_threads: 32
  threads_per_block: 256
  warps_per_core: 16
  blocks_per_core: 8
  registers_per_core: 4096
  registers_per_thread: 128
  shared_bytes: 48000
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("  registers_per_thread: 128\n", "", 9, "missing limit 'registers_per_thread'"),
        ("  warp_threads: 32\n", "", 9, "missing limit 'warp_threads'"),
        ("warp_threads: 32", "warp_thread: 32", 9, "unknown key 'warp_thread'"),
        ("limits:", "compiler: {arhc: sm_80}\nlimits:", 8, "unknown key 'arhc'"),
        ("threads_per_block: 256", "threads_per_block: 100", 10, "no whole number of warps of 32"),
        ("shared_bytes: 48000", "shared_bytes: 65537", 15, "65,537 bytes of shared memory are more than the core's"),
        ("name: shared", "name: scratch", 5, "missing memory 'shared'"),
        ("name: DRAM", "name: HBM3", 5, "missing memory 'DRAM'"),
        ("bandwidth: 128 B/cycle, ", "", 5, "shared has no bandwidth"),
        (", latency: 450 cycles", "", 7, "DRAM has no latency"),
        ("registers_per_core: 4096", "registers_per_core: 31", 13, "31 registers a core"),
        ("warp_threads: 32", "warp_threads: 0", 9, "must be above 0"),
    ],
)
def test_what_a_gpu_must_state(old, new, line, message):
    assert target_from_yaml(GPU, "gpu.yaml").limits["warp_threads"] == 32
    assert old in GPU
    with pytest.raises(SpecError, match=message) as caught:
        target_from_yaml(GPU.replace(old, new), "gpu.yaml")
    assert (caught.value.location.file, caught.value.location.line) == ("gpu.yaml", line)


PRODUCTS = {
    # Peaks of the datasheets, in TFLOP/s, and memory bandwidth, in TB/s: what the parts of a file must add up to.
    "nvidia-h100": ("ops.tensor.bf16", 989.4, 3.35),
    "nvidia-h200": ("ops.tensor.bf16", 989.4, 4.8),
    "nvidia-a100": ("ops.tensor.bf16", 312.0, 2.039),
    "nvidia-rtx4090": ("ops.tensor.bf16", 165.2, 1.008),
    "amd-mi300x": ("ops.tensor.bf16", 1307.4, 5.3),
    "metax-c500": ("ops.tensor.bf16", 240.0, 1.8),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_add_up_to_their_datasheets(name):
    target, (rate, peak, memory) = load_target(name), PRODUCTS[name]
    assert target.cores * target.rates[rate] * target.clock_hz == pytest.approx(peak * 1e12, rel=0.005)
    assert target.memory("DRAM").bandwidth_bytes_per_s == memory * 1e12


MADE_UP = {"portable", "x86-avx2", "x86-avx512", "arm-neoverse-n1"}
"""Targets that stand for no product, and older files, whose figures share one source."""


@pytest.mark.parametrize("name", sorted(set(target_names()) - MADE_UP))
def test_every_figure_of_a_product_has_a_source(name):
    target = load_target(name)
    figures = {"cores", "clock", *(f"rates.{r}" for r in target.rates), *(f"limits.{n}" for n in target.limits)}
    for memory in target.memories:
        figures |= {f"memories.{memory.name}.{part}" for part in ("bytes",)}
        for part, value in (("bandwidth", memory.bandwidth_bytes_per_s), ("latency", memory.latency_s)):
            figures |= {f"memories.{memory.name}.{part}"} if value is not None else set()
        figures |= {f"memories.{memory.name}.banks"} if memory.banks is not None else set()
    assert figures <= set(target.sources)


def test_the_metax_file_says_that_it_is_approximate():
    target = load_target("metax-c500")
    assert "approximate" in target.summary
    assert all("approximate" in target.sources[f] for f in ("cores", "clock", "memories.shared.latency"))


def test_unknown_names_and_files():
    with pytest.raises(UnknownNameError, match="x86-avx512"):
        load_target("x86-avx521")
    with pytest.raises(SpecError, match=r"nowhere\.yaml"):
        load_target("nowhere.yaml")


def test_a_file_by_path(tmp_path):
    path = tmp_path / "toy.yaml"
    path.write_text(GOOD)
    assert load_target(path) == load_target(str(path))
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError):
        load_target(path)


def test_the_schema_is_current():
    stored = json.loads((resources.files("autosched.targets") / "schema.json").read_text(encoding="utf-8"))
    assert stored == target_schema()


SCRATCHPAD = GOOD.replace(
    "{name: DRAM, bytes: 64 MiB,",
    "{name: pad, bytes: 32 KiB, energy: 6 pJ/B, holds: [inputs]}\n  - {name: DRAM, bytes: 64 MiB,",
).replace("cores: 4", "cores: 4\n  energy: {ops.f16: 500 fJ/op}\n  power: 20 mW")


def test_energy_and_scratchpads():
    target = target_from_yaml(SCRATCHPAD, "toy.yaml")
    assert target.energy == {"ops.f16": pytest.approx(5e-13)}
    assert target.static_watts == pytest.approx(0.02)
    assert target.memory("pad").joules_per_byte == pytest.approx(6e-12)
    assert target.memory("pad").holds == ("inputs",)
    assert target.memory("DRAM").joules_per_byte is None
    again = target_from_yaml(target_yaml(target), "again.yaml")
    assert dataclasses.replace(again, version=target.version) == target


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("6 pJ/B", "6 pJ/op", "unknown unit 'pJ/op'"),
        ("6 pJ/B", "-6 pJ/B", "impossible"),
        ("500 fJ/op", "0.5", "not a figure with a unit|has no unit"),
        ("20 mW", "20 mV", "unknown unit 'mV'"),
        ("[inputs]", "[weights]", "a scratchpad holds inputs and accumulators, not 'weights'"),
    ],
)
def test_impossible_energy_and_scratchpads(old, new, message):
    with pytest.raises(SpecError, match=message):
        target_from_yaml(SCRATCHPAD.replace(old, new), "toy.yaml")
