"""Compiling without a driver: what a kernel takes, its machine instructions, clear errors, the cache, the processes."""

import os
import shutil
import subprocess
from concurrent.futures import wait

import pytest
from support.cards.nvrtc import needs_disassembler, needs_nvrtc

from autosched.codegen.cuda.headers import device_headers
from autosched.device.cuda.compile import builder as builders
from autosched.device.cuda.compile.builder import CudaBuilder, TranslationUnit
from autosched.device.cuda.compile.cubins import CubinCache, cubin_key
from autosched.device.cuda.compile.nvrtc import OPTIONS, UNLIMITED, Cubin, CudaCompileError, compile_cuda
from autosched.device.cuda.compile.resources import Resources, resources_of, warnings_of
from autosched.device.cuda.compile.sass import instructions_of
from autosched.device.cuda.compile.toolkit import toolkit, toolkits
from autosched.errors import MissingError

COPY = """
#include "twice.cuh"
extern "C" __global__ void __launch_bounds__(128) scale(const float *a, float *b) {
    __shared__ float tile[128];
    tile[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    b[threadIdx.x] = twice(tile[127 - threadIdx.x]);
}
"""
TWICE = {"twice.cuh": "__device__ inline float twice(float x) { return 2 * x; }\n"}
DP4A = """
extern "C" __global__ void __launch_bounds__(128) dot(const int *a, const int *b, int *c) {
    int sum = c[threadIdx.x];
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a[threadIdx.x]), "r"(b[threadIdx.x]));
    c[threadIdx.x] = sum;
}
"""
WMMA = """
extern "C" __global__ void __launch_bounds__(32) product(const int *a, const int *b, int *c) {
    int x[8], y[8], z[4];
    for (int i = 0; i < 8; ++i) { x[i] = a[32 * i + threadIdx.x]; y[i] = b[32 * i + threadIdx.x]; }
    for (int i = 0; i < 4; ++i) z[i] = c[32 * i + threadIdx.x];
    asm volatile("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11},"
                 " {%12, %13, %14, %15, %16, %17, %18, %19}, {%0, %1, %2, %3};"
                 : "+r"(z[0]), "+r"(z[1]), "+r"(z[2]), "+r"(z[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]), "r"(y[0]),
                   "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7]));
    for (int i = 0; i < 4; ++i) c[32 * i + threadIdx.x] = z[i];
}
"""


@pytest.mark.parametrize("arch", ["sm_61", "sm_70", "sm_75", "sm_80", "sm_89", "sm_90a"])
def test_a_text_with_a_header_compiles_for_every_generation(arch):
    needs_nvrtc(arch)
    cubin = compile_cuda(COPY, arch, TWICE)
    assert cubin.code[:4] == b"\x7fELF"
    taken = cubin.kernels["scale"]
    assert taken.shared_bytes == 512
    assert not taken.spills
    assert 4 <= taken.registers <= 32


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("text", "arch", "operation"),
    [(DP4A, "sm_61", "IDP"), (DP4A, "sm_70", "IDP"), (DP4A, "sm_75", "IDP"), (DP4A, "sm_90a", "IDP")]
    + [(WMMA, arch, "HMMA") for arch in ("sm_70", "sm_75", "sm_80", "sm_90a")],
)
def test_the_machine_instruction_is_there(text, arch, operation):
    needs_nvrtc(arch)
    needs_disassembler()
    assert instructions_of(compile_cuda(text, arch).code, arch)[operation] >= 1
    assert instructions_of(compile_cuda(COPY, arch, TWICE).code, arch)[operation] == 0


def test_an_error_names_file_and_line():
    needs_nvrtc("sm_80")
    with pytest.raises(CudaCompileError) as caught:
        compile_cuda(COPY, "sm_80", {"twice.cuh": "\n__device__ float twice(float x) { return y; }\n"})
    assert "twice.cuh(2): error" in caught.value.message
    assert caught.value.location.line == 2
    assert "return y" in str(caught.value)


def test_what_the_assembler_refuses_is_an_error():
    needs_nvrtc("sm_80")
    with pytest.raises(CudaCompileError, match="foo"):
        compile_cuda('extern "C" __global__ void k() { asm("foo;"); }', "sm_80")
    with pytest.raises(CudaCompileError, match="too much shared data"):
        compile_cuda(COPY.replace("128]", "1 << 20]"), "sm_80", TWICE)


def test_unknown_architectures_are_missing():
    with pytest.raises(MissingError):
        toolkit("sm_31")
    with pytest.raises(MissingError, match="no architecture"):
        toolkit("gfx90a")


def test_a_driver_that_is_too_old_is_said():
    needs_nvrtc("sm_90a")
    with pytest.raises(MissingError, match=r"the driver is of CUDA 11\.4"):
        toolkit("sm_90a", newest=(11, 4))
    assert toolkit("sm_90a", newest=(99, 0)) == toolkits()[0]


def test_spills_are_read_from_the_log():
    log = """ptxas info    : Compiling entry function 'a' for 'sm_90a'
ptxas info    : Function properties for a
    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 255 registers, used 2 barriers, 1024 bytes smem, 340 bytes cmem[0]
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized in function 'a'
ptxas info    : Compiling entry function 'b' for 'sm_90a'
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers
"""
    assert resources_of(log) == {"a": Resources(255, 8, 16, 24, 1024, 2), "b": Resources(12)}
    assert [w for w in warnings_of(log) if "serialized" in w]


def test_the_builder_compiles_each_text_once(tmp_path):
    needs_nvrtc("sm_80")
    made = CudaBuilder(CubinCache(tmp_path / "cubins"), processes=2)
    good, bad = TranslationUnit(DP4A, "sm_80"), TranslationUnit("nonsense", "sm_80")
    try:
        first, wrong, again = made.build_all([good, bad, good])
        starts = [w.starts for w in made._workers]
        assert made.build_all([good])[0] is first
        assert [w.starts for w in made._workers] == starts
    finally:
        made.close()
    assert first is again
    assert isinstance(wrong, CudaCompileError)
    assert wrong.location.line == 1
    other = CudaBuilder(CubinCache(tmp_path / "cubins"), processes=1)
    assert other.build(good) == first
    assert not other._workers[0].starts
    for file in (tmp_path / "cubins").iterdir():
        file.write_bytes(b"half")
    broken = CudaBuilder(CubinCache(tmp_path / "cubins"), processes=1)
    try:
        assert broken.build(good) == first
    finally:
        broken.close()


def test_a_compiler_that_dies_or_hangs_costs_its_text_only():
    needs_nvrtc("sm_80")
    other = DP4A + "// another text\n"
    slow = DP4A.replace("int sum", "".join(f"volatile int v{i} = {i};\n" for i in range(20000)) + "int sum")
    made = CudaBuilder(processes=1)
    try:
        made.build(TranslationUnit(DP4A, "sm_80"))  # the worker is there now
        made.deadline_s = 0.3
        (late,) = made.build_all([TranslationUnit(slow, "sm_80")])
        assert isinstance(late, CudaCompileError)
        assert "did not finish" in late.message
        made.deadline_s = builders.BUILD_LIMIT_S
        assert not isinstance(made.build_all([TranslationUnit(other, "sm_80")])[0], CudaCompileError)
    finally:
        made.close()


def test_compilers_that_nobody_waits_for_end():
    needs_nvrtc("sm_80")
    slow = DP4A.replace("int sum", "".join(f"volatile int v{i} = {i};\n" for i in range(20000)) + "int sum")
    made = CudaBuilder(processes=1)
    try:
        made.build(TranslationUnit(DP4A, "sm_80"))
        begun = [made.begin(TranslationUnit(slow + f"// {i}\n", "sm_80")) for i in range(3)]
        made.give_up(begun)
        wait(begun, 20)
        assert all(b.cancelled() or isinstance(b.result(), CudaCompileError) for b in begun)
        assert not isinstance(made.build_all([TranslationUnit(DP4A + "// again\n", "sm_80")])[0], CudaCompileError)
    finally:
        made.close()


def test_a_kernel_that_spills_within_its_limit_is_compiled_without_one():
    needs_nvrtc("sm_90a")
    sums = "\n".join(f"    float s{i} = a[threadIdx.x + {i}];" for i in range(64))
    steps = "".join(f"s{i} = s{i} * s{(5 * i + 1) % 64} + a[turn];" for i in range(64))
    total = " + ".join(f"s{i}" for i in range(64))
    text = f"""#include "autosched/limit.cuh"
extern "C" __global__ void LIMIT_REGISTERS(128, %d) mixed(float *a, int turns) {{
{sums}
    for (int turn = 0; turn < turns; ++turn) {{ {steps} }}
    a[threadIdx.x] = {total};
}}"""
    headers = device_headers()
    free = compile_cuda(text % 200, "sm_90a", headers, options=(*OPTIONS, UNLIMITED)).kernels["mixed"]
    assert 64 < free.registers < 200
    assert not free.spills
    assert compile_cuda(text % 48, "sm_90a", headers).kernels["mixed"] == free
    assert compile_cuda(text % 200, "sm_90a", headers).kernels["mixed"].registers <= 200


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine")
@pytest.mark.parametrize(
    ("minor", "defined", "bounds"),
    [(4, (), "__maxnreg__(48)"), (3, (), "__launch_bounds__(128)"), (9, ("UNLIMITED",), "__launch_bounds__(128)")],
)
def test_older_compilers_are_given_launch_bounds_for_limits(minor, defined, bounds, tmp_path):
    (tmp_path / "f.c").write_text(device_headers()["autosched/limit.cuh"] + "LIMIT_REGISTERS(128, 48)\n")
    version = ["-D__CUDACC_VER_MAJOR__=12", f"-D__CUDACC_VER_MINOR__={minor}"]
    command = ["gcc", "-E", "-P", *version, *(f"-DAUTOSCHED_{d}" for d in defined), str(tmp_path / "f.c")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == bounds


class Asked:
    """An NVRTC that remembers how it is called, and refuses the text."""

    def __init__(self, version):
        self.version, self.library, self.options = version, self, ()

    def nvrtcCompileProgram(self, program, count, words):
        self.options = tuple(word.decode() for word in words)
        return 1

    def nvrtcGetErrorString(self, status):
        return b"refused"

    def __getattr__(self, name):
        return lambda *arguments: 0


@pytest.mark.parametrize(("version", "known"), [((12, 8), False), ((12, 9), True), ((13, 0), True)])
def test_the_compiler_s_own_cache_is_not_used(version, known):
    kit = Asked(version)
    with pytest.raises(CudaCompileError, match="refused"):
        compile_cuda("", "sm_80", kit=kit)
    assert ("--no-cache" in kit.options) == known


@pytest.mark.slow
def test_a_kernel_that_spills_within_its_limit_has_its_loops_rolled():
    """Unrolled, the places of all turns are computed before the loop around."""
    needs_nvrtc("sm_90a")
    text = """#include "autosched/limit.cuh"
extern "C" __global__ void LIMIT_REGISTERS(128, 32) mixed(const float* a, const long long* at, float* b, int slices) {
    float sums[8] = {};
    #pragma unroll 1
    for (int slice = 0; slice < slices; ++slice) {
        #pragma unroll UNROLL(32)
        for (int turn = 0; turn < 32; ++turn) {
            const long long place = (at[turn % 5] * turn) ^ (threadIdx.x * 7 + turn);
            #pragma unroll
            for (int i = 0; i < 8; ++i) sums[i] = sums[i] * a[place + slice * 512 + i];
        }
    }
    #pragma unroll
    for (int i = 0; i < 8; ++i) b[threadIdx.x * 8 + i] = sums[i];
}"""
    headers = device_headers()
    free = compile_cuda(text, "sm_90a", headers, options=(*OPTIONS, UNLIMITED)).kernels["mixed"]
    assert free.registers > 32
    found = compile_cuda(text, "sm_90a", headers).kernels["mixed"]
    assert not found.spills
    assert found.registers <= 32


def test_a_key_depends_on_everything():
    keys = {
        cubin_key("a", {}, "sm_80", "NVRTC 13.0"),
        cubin_key("b", {}, "sm_80", "NVRTC 13.0"),
        cubin_key("a", {"h": ""}, "sm_80", "NVRTC 13.0"),
        cubin_key("a", {"h": "x"}, "sm_80", "NVRTC 13.0"),
        cubin_key("a", {}, "sm_90a", "NVRTC 13.0"),
        cubin_key("a", {}, "sm_80", "NVRTC 12.9"),
        cubin_key("a", {}, "sm_80", "NVRTC 13.0", ("-G",)),
    }
    assert len(keys) == 7


def test_a_toolkit_says_which_build_it_is():
    needs_nvrtc("sm_90a")
    kit = toolkit("sm_90a")
    major, minor = kit.version
    assert kit.release.startswith(f"V{major}.{minor}.")


def test_a_folder_of_cubins_forgets_what_was_asked_for_least_lately(tmp_path):
    cache = CubinCache(tmp_path, most_bytes=1000)
    for n in range(4):
        cache.put(f"k{n}", Cubin(bytes(240), "sm_90a", "13.0", {}))
        os.utime(tmp_path / f"k{n}.cubin", (n, n))
    assert cache.get("k0") is not None  # asked for: now the youngest
    cache.put("k4", Cubin(bytes(240), "sm_90a", "13.0", {}))
    assert [n for n in range(5) if cache.get(f"k{n}") is not None] == [0, 3, 4]
    assert len(list(tmp_path.iterdir())) == 6
