"""Each mistake gives one clear message with its place and what helps, the right exit status, and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.conftest import SMALL, Cli, make_cli

PROGRAMS = {
    "syntax.py": "def f(A: f32[m], *, m=4):\n    for i in range(m)\n        A[i] = 0\n",
    "shape.py": "def f(A: f32[m], B: f32[m, m], *, m=4):\n    for i in range(m):\n        B[i] = A[i]\n",
    "dtype.py": "def f(A: f32[m], B: s8[m], *, m=4):\n    for i in range(m):\n        B[i] = A[i]\n",
    "bounds.py": "def f(A: f32[m], B: f32[m], *, m=4):\n    for i in range(m):\n        B[i] = A[i + 1]\n",
    "hostile.py": "import os\nos.system('touch HOSTILE')\n",
    "two.py": "def f(A: f32[m], *, m=4):\n    for i in range(m):\n        A[i] = 0\n"
    "def g(A: f32[m], *, m=4):\n    for i in range(m):\n        A[i] = 0\n",
}
_DOT = """\
isa: x86
intrinsics:
  - name: dot
    semantics: |
      def dot(a: {a}[4], b: s8[4], c: s32[1]):
          for k in range(4):
              c[0] += s32(a[k]) * s32(b[k])
"""
_FRAGMENT = """\
isa: cuda
intrinsics:
  - name: dot
    scope: warp
    semantics: |
      def dot(a: f16[16, 8], c: f16[16, 8]):
          for i, j in grid(16, 8):
              c[i, j] += a[i, j]
    operands:
      a: {registers: 2 x b32, fragment: ['t//4', '2*(t%4) + v%2']}
      c: {registers: 2 x b32, fragment: ['t//4 + 8*(v//2)', '2*(t%4) + v%2']}
"""
SPECS = {
    "key.yaml": _DOT.format(a="s8") + "    tming: {latency: 4}\n",
    "type.yaml": _DOT.format(a="s9"),
    "fragment.yaml": _FRAGMENT,
    "broken.yaml": "isa: [x86\n",
    "empty.yaml": "",
    "unwritten.yaml": _DOT.format(a="s8").replace("x86", "npu"),
}
SMALL_MATMUL = " ".join(SMALL)
CASES = [
    # programs
    ("tune syntax.py", 2, ["syntax.py:2", "for i in range(m)", "expected ':'"]),
    ("tune shape.py", 2, ["shape.py:3:9", "B[i] = A[i]", "2 dimensions"]),
    ("tune dtype.py", 2, ["dtype.py:3:16", "takes s8", "help: cast it"]),
    ("tune bounds.py", 2, ["bounds.py:3", "B[i] = A[i + 1]"]),
    ("match hostile.py", 2, ["hostile.py:1:1", "import os"]),
    ("tune two.py:h", 2, ["two.py:1:1: unknown function 'h'", "known: f, g"]),
    ("tune bounds.py -D z=4", 2, ["bounds.py:1:1: unknown size or dtype 'z'", "known: m"]),
    ("tune missing.py", 2, ["missing.py", "No such file"]),
    ("tune folder.py", 2, ["folder.py", "Is a directory"]),
    ("tune binary.py", 2, ["binary.py is not UTF-8 text"]),
    ("tune mk,kn->mq", 2, ["'q'", "mk,kn->mq", "the operands have m, k, n"]),
    ("tune two.yaml", 2, ["'two.yaml' is no program", "give path.py"]),
    ("tune .", 2, ["'.' is no program, but a folder", "give path.py"]),
    ("tune mk,kn->mm", 2, ["'m'", "repeated", "name each letter once"]),
    # names
    ("tune matmull", 2, ["unknown workload 'matmull'", "did you mean 'matmul'?"]),
    ("tune matmul -D mm=8", 2, ["'mm'", "did you mean 'm'?"]),
    (f"tune {SMALL_MATMUL} -t zen33", 2, ["unknown target 'zen33'", "amd-zen4", "x86-avx512"]),
    (f"tune {SMALL_MATMUL} -t nativ", 2, ["unknown target 'nativ'", "did you mean 'native'?"]),
    (f"tune {SMALL_MATMUL} -s evolutionry", 2, ["unknown strategy", "did you mean 'evolutionary'?"]),
    (f"tune {SMALL_MATMUL} -i x86/vpdpbusdd", 2, ["unknown intrinsic", "did you mean 'x86/vpdpbusd"]),
    (f"match {SMALL_MATMUL} -i x86/vpdpbusdd", 2, ["unknown intrinsic", "did you mean 'x86/vpdpbusd"]),
    (f"tune {SMALL_MATMUL} -t x86-avx2 -i x86/vpdpbusd.zmm", 2, ["x86-avx2 lacks avx512_vnni", "zmm requires"]),
    (f"match {SMALL_MATMUL} -t nvidia-a100 -i cuda/wgmma*", 2, ["lacks sm_90a, which cuda/wgmma", "it has"]),
    (f"tune {SMALL_MATMUL} -t x86-avx2 -i cuda/dp4a*", 2, ["x86-avx2 is x86, and cuda/dp4a", "are for cuda"]),
    (f"tune {SMALL_MATMUL} -t nvidia-h200 -d simulator -i cuda/ldmatrix.x4", 2, ["computes nothing: it is a copy"]),
    (f"tune {SMALL_MATMUL} -t native -i npu/* --intrinsics unwritten.yaml", 2, ["native is x86", "for npu"]),
    ("intrinsics show x86/vpdpbusdd", 2, ["unknown intrinsic", "did you mean 'x86/vpdpbusd"]),
    ("targets show nvidia-h20", 2, ["unknown target", "did you mean 'nvidia-h200'?"]),
    (f"tune {SMALL_MATMUL} -d simulater", 2, ["unknown device", "did you mean 'simulator'?"]),
    (f"tune {SMALL_MATMUL} --cost-model xbg", 2, ["unknown cost model", "did you mean 'xgb'?"]),
    (f"tune {SMALL_MATMUL} --numerics exact", 2, ["unknown numerics level 'exact'", "bitwise"]),
    (f"tune {SMALL_MATMUL} --effort fulll", 2, ["did you mean 'full'?"]),
    (f"tune {SMALL_MATMUL} --cache hot", 2, ["unknown cache state 'hot'", "cold"]),
    ("tun matmul", 2, ["No such command 'tun'", "tune"]),
    ("tune matmul --trails 3", 2, ["No such option", "--trials"]),
    ("show matmul --as code", 2, ["unknown view 'code'"]),
    # sizes, dtypes and budgets
    ("tune matmul -D m=0", 2, ["m is 0", "at least 1"]),
    ("tune matmul -D m=-4", 2, ["m=-4", "negative"]),
    ("tune batch_matmul -D b=3", 2, ["b is a dtype, and 3 is not", "the program has batch, m, n, k"]),
    ("tune matmul -D a=u9", 2, ["a='u9'", "did you mean 'u8'?"]),
    ("tune matmul -D m", 2, ["-D m: not of the form name=value"]),
    ("tune matmul -D m=", 2, ["not of the form name=value"]),
    ("tune matmul -D m=8 -D m=9", 2, ["-D m is given twice"]),
    ("tune matmul -D m=1..64", 2, ["m is symbolic", "-D m=64"]),
    (f"tune {SMALL_MATMUL} --trials 0", 2, ["trials is 0", "give 1 or more"]),
    (f"tune {SMALL_MATMUL} --trials x", 2, ["--trials"]),
    (f"tune {SMALL_MATMUL} --threads 0", 2, ["threads is 0"]),
    (f"tune {SMALL_MATMUL} --seed -1", 2, ["--seed", "greater than or equal to 0"]),
    (f"tune {SMALL_MATMUL} --timeout 5x", 2, ["--timeout 5x", "90s"]),
    (f"tune {SMALL_MATMUL} --timeout 0s", 2, ["--timeout 0s"]),
    # intrinsics and targets in YAML
    ("intrinsics check key.yaml", 2, ["key.yaml:", "tming", "timing"]),
    (f"match {SMALL_MATMUL} --intrinsics key.yaml", 2, ["key.yaml:", "tming"]),
    ("intrinsics check type.yaml", 2, ["type.yaml:", "s9"]),
    ("intrinsics check fragment.yaml", 2, ["fragment.yaml:", "a"]),
    ("intrinsics check broken.yaml", 2, ["broken.yaml:"]),
    ("intrinsics check empty.yaml", 2, ["empty.yaml"]),
    ("intrinsics check binary.yaml", 2, ["binary.yaml"]),
    ("intrinsics check missing.yaml", 2, ["missing.yaml", "No such file", "give a YAML file"]),
    ("simulate missing.json", 2, ["missing.json", "No such file", "give a recording"]),
    (f"tune {SMALL_MATMUL} --intrinsics missing.yaml", 2, ["missing.yaml", "No such file"]),
    (f"tune {SMALL_MATMUL} -t missing.yaml", 2, ["missing.yaml", "No such file"]),
    (f"tune {SMALL_MATMUL} -t key.yaml", 2, ["key.yaml:"]),
    # stores
    (f"tune {SMALL_MATMUL} --store binary.db", 2, ["binary.db", "not a database", "--store another path"]),
    (f"tune {SMALL_MATMUL} --store folder.py", 2, ["folder.py is a folder"]),
    (f"tune {SMALL_MATMUL} --store mysql://x/y", 2, ["not mysql://"]),
    ("show nothing --store absent.db", 2, ["no store at absent.db"]),
    ("trials nothing --store binary.db", 2, ["binary.db", "not a database"]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Cli:
    place = tmp_path_factory.mktemp("bad")
    for name, text in {**PROGRAMS, **SPECS}.items():
        (place / name).write_text(text)
    for name in ("binary.py", "binary.db", "binary.yaml"):
        (place / name).write_bytes(bytes(range(128, 256)) * 20)
    (place / "folder.py").mkdir()
    return make_cli(place, home).near()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("command", "status", "said"), CASES, ids=[c[0] for c in CASES])
def test_a_mistake_gets_one_message(folder: Cli, command: str, status: int, said: list[str]) -> None:
    done = folder(*command.split(), status=status)
    for text in said:
        assert text in done.err, done.err
    assert done.err.lower().count("error:") == 1, done.err
    assert done.out == ""
    assert not (folder.folder / "HOSTILE").exists()


@pytest.mark.slow
def test_status_and_message_of_a_real_process(cli: Cli) -> None:
    done = cli("tune", "matmull", status=2)
    assert done.err.startswith("error: unknown workload 'matmull'\nhelp: did you mean 'matmul'?")
    assert cli("tune", "matmul", "-D", status=2).err.endswith("'-D' requires an argument.\n")


@pytest.mark.slow
def test_a_write_where_data_says_is_refused_with_its_place(cli: Cli) -> None:
    (cli.folder / "histogram.py").write_text(
        "def histogram(I: s32[n], H: s32[m], *, n=100, m=16):\n"
        "    assume(0 <= I <= 15)\n    for i in range(n):\n        H[I[i]] += 1\n"
    )
    said = cli("tune", "histogram.py", status=2).err
    assert "histogram.py:4:9" in said
    assert "written at indices from data" in said


@pytest.mark.slow
def test_timeout_holds_before_the_first_trial(cli: Cli) -> None:
    (cli.folder / "slow.py").write_text(
        "def slow(A: f64[n], B: f64[n], *, n=4000000):\n    for t in range(400):\n"
        "        for i in range(n):\n            B[i] = exp(A[i]) + f64(t)\n"
    )
    said = cli("tune", "slow.py", "--timeout", "3s", status=1).err
    assert "over before the first trial, while" in said
