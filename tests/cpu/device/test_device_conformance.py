"""The cpu device with lowered kernels: the conformance suite, and programs of several dtypes on one and two threads."""

import os

import numpy as np
import pytest
from conformance.device import DeviceConformance

from autosched.device.cpu.device import CpuDevice
from autosched.errors import UsageError
from autosched.ir import parse, workload
from autosched.machine.catalogue import load_target
from autosched.machine.detect import usable_cpus
from autosched.machine.host import host_features
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.candidate import Candidate
from autosched.tiling.planner.make_plans import make_plans

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the timing worker needs POSIX")


def usable():
    native = load_target("native")
    found = [i for i in Catalogue.builtin().of_isa(native.isa, "portable") if native.has(i.requires)]
    return native, [i for i in found if "llvm" in i.emit]


def candidates_of(program, count, threads=1, seed=0):
    """Random legal rows of the plans of a program's unconditional mappings."""
    native, intrinsics = usable()
    mappings = {}
    for found in match(program, intrinsics):
        good = [m for m in found.mappings if not m.conditions and not m.adapters]
        mappings.setdefault(found.stage, []).extend(good)
    plans = make_plans(program, native, mappings, threads)
    rng = np.random.default_rng(seed)
    return [Candidate(p, int(np.ravel(p.space.sample(1, rng))[0])) for p in (plans * count)[:count]]


GEMM = {"m": 24, "n": 40, "k": 36}


@pytest.fixture(scope="module")
def gemm():
    return workload("matmul", **GEMM, a="u8", b="s8", acc="s32")


@pytest.fixture(scope="module")
def gemm_device(gemm):
    with CpuDevice(gemm) as found:
        yield found


@pytest.fixture(scope="module")
def gemm_candidates(gemm):
    return candidates_of(gemm, 3)


class TestCpu(DeviceConformance):
    @pytest.fixture
    def device(self, gemm_device):
        return gemm_device

    @pytest.fixture
    def candidates(self, gemm_candidates):
        return gemm_candidates


SCALED = """
def scaled(A: {t}[m, k], B: const[{t}[k, n]], C: f32[m, n], s: f32, *, m=17, n=35, k=19):
    for i, j in grid(m, n):
        C[i, j] = 0.0
        for p in range(k):
            C[i, j] += f32(A[i, p]) * f32(B[p, j])
    for i, j in grid(m, n):
        C[i, j] = s * C[i, j]
"""
PROGRAMS = {
    "f32": lambda: workload("matmul", **GEMM),
    "f64": lambda: workload("matmul", **GEMM, a="f64", b="f64", acc="f64"),
    "bf16": lambda: workload("matmul", **GEMM, a="bf16", b="bf16", acc="f32"),
    "a run-time scalar": lambda: parse(SCALED.format(t="f32")),
    "f16 and a run-time scalar": lambda: parse(SCALED.format(t="f16")),
    "convolution": lambda: workload("conv2d", n=1, h=7, w=9, ci=8, co=16, t="f32"),
    "in place": lambda: parse(
        "def prefix(X: s32[n], *, n=100):\n    for i in range(1, n):\n        X[i] = X[i] + X[i - 1]\n"
    ),
    "saturated": lambda: workload("matmul_requant", m=9, n=33, k=20),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_lowered_kernels_are_right(name, threads):
    if threads > len(usable_cpus()):
        pytest.skip("one CPU")
    program = PROGRAMS[name]()
    chosen = candidates_of(program, 3, threads)
    with CpuDevice(program, threads=threads) as device:
        found = [device.measure(device.build(c)) for c in chosen]
        assert [(m.status, m.message) for m in found] == [("ok", "")] * len(chosen)
        again = device.measure_interleaved([device.build(c) for c in chosen], 3)
        assert [m.status for m in again] == ["ok"] * len(chosen)


@pytest.mark.slow
@pytest.mark.skipif("avx512_vnni" not in host_features(), reason="needs AVX-512 VNNI")
@pytest.mark.skipif("amx_int8" in host_features(), reason="AMX takes the place of AVX-512 VNNI in the first plans")
def test_an_instruction_that_the_named_cpu_lacks_is_a_failed_build():
    """LLVM ends its process for it; the device goes on."""
    program = workload("matmul", **GEMM, a="u8", b="s8", acc="s32")
    wide = next(c for c in candidates_of(program, 8) if "x86/vpdpbusd.zmm" in c.plan.intrinsics)
    with CpuDevice(program, load_target("x86-avx2")) as device:
        build = device.build(wide)
        assert build.payload is None
        assert device.measure(build).status == "build"
        assert "LLVM ERROR" in build.error
        native = candidates_of(program, 1)[0]
        assert device.build(native) is not None


def test_a_callable_computes_what_the_oracle_does():
    program = workload("matmul", **GEMM, a="u8", b="s8", acc="s32")
    rng = np.random.default_rng(3)
    a = rng.integers(0, 256, (24, 36)).astype(np.uint8)
    b = rng.integers(-128, 128, (36, 40)).astype(np.int8)
    with CpuDevice(program) as device:
        kernel = device.callable(candidates_of(program, 1)[0])
    assert (kernel(a, b) == a.astype(np.int32) @ b.astype(np.int32)).all()


def test_a_program_with_a_symbolic_size_is_refused():
    program = workload("matmul", m="1..64", n=32, k=32)
    with CpuDevice(program) as device, pytest.raises(UsageError, match="range"):
        device._data_of(program)
