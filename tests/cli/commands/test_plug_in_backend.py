"""A package brings a machine with a language of its own: kernels are tuned for it, shown and exported in it."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
from cli.conftest import Cli
from support.paths import ROOT

PACKAGE = '''\
from autosched.backends import Backend, Language
from autosched.codegen.print_functions import PrintFunctions
from autosched.codegen.tree.text import print_kernel


def _text(kernel, target):
    lines = [f"-- {line}" for line in print_kernel(kernel).splitlines()]
    return "\\n".join([f"-- {kernel.name} for {target.name}", *lines, ""])


FUNCTIONS = PrintFunctions(_text)
TEXT = Language("loom-text", "loom text", "loom", ".loom", functions="loom_package:FUNCTIONS")
LOOM = Backend("loom", language=TEXT, emits="loom-text")
'''
TARGET = """\
name: loom-one
source: a round figure each
isa: loom
features: [loom_dot]
units:
  cores: 1
  clock: 1 GHz
  rates: {load: 1 issue/cycle, store: 1 issue/cycle, scalar: 1 issue/cycle}
memories:
  - {name: registers, bytes: 1 KiB, shared_by: core}
  - {name: L1, bytes: 32 KiB, bandwidth: 16 B/cycle, latency: 4 cycles, shared_by: core, line: 64 B}
  - {name: DRAM, bytes: 1 GiB, bandwidth: 8 GB/s, latency: 100 ns, shared_by: device, line: 64 B}
limits: {vector_registers: 16, vector_bytes: 16}
"""
INTRINSIC = """\
isa: loom
requires: [loom_dot]
intrinsics:
  - name: dot
    semantics: |
      def dot(a: s8[4, 4], b: s8[4], c: s32[4]):
          for i, k in grid(4, 4):
              c[i] += s32(a[i, k]) * s32(b[k])
    operands:
      a: {packed: [i, k]}
      b: {packed: [k]}
      c: {packed: [i]}
    emit: "dot {a}, {b} into {c}"
"""


EXAMPLE = ROOT / "examples" / "backend"


def described(folder: Path, points: str) -> None:
    """A package's entry points, beside its modules."""
    info = folder / "package_of_a_backend-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: package-of-a-backend\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


@pytest.fixture
def loom(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command where the package is installed, in a folder with a target and an instruction."""
    site = cli.folder / "site"
    described(site, "[autosched.backends]\nloom = loom_package:LOOM\n")
    (site / "loom_package.py").write_text(PACKAGE)
    (cli.folder / "loom.yaml").write_text(TARGET)
    (cli.folder / "dot.yaml").write_text(INTRINSIC)
    monkeypatch.syspath_prepend(site)
    return cli.near()


@pytest.fixture
def mini(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command where the example of a backend, with a device, is installed: by what its pyproject.toml says."""
    groups = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    lines = [line for g, points in groups.items() for line in (f"[{g}]", *(f"{k} = {v}" for k, v in points.items()))]
    described(cli.folder / "site", "\n".join(lines))
    monkeypatch.syspath_prepend(cli.folder / "site")
    monkeypatch.syspath_prepend(EXAMPLE)
    return cli.near()


def test_its_kernels_are_tuned_shown_and_exported(loom: Cli) -> None:
    sizes = [x for pair in ("m=16", "n=16", "k=16", "a=s8", "b=s8", "acc=s32") for x in ("-D", pair)]
    tuned = loom("tune", "matmul", *sizes, "-t", "loom.yaml", "--intrinsics", "dot.yaml", "-n", 2)
    assert "matmul.loom" in tuned.out, "the file that it proposes to write"
    shown = loom("show", "--as", "loom-text")
    assert shown.out.startswith("-- matmul for loom-one\n")
    assert "<- loom/dot(" in shown.out
    assert loom("show", "--json").json["loom-text"] == shown.out
    assert loom("export", "-o", "product.loom").out.split() == ["product.loom"]
    assert (loom.folder / "product.loom").read_text().startswith("-- product for loom-one\n")
    for option in ("--self-test", "--torch", "--shared"):
        refused = loom("export", "-o", "product.loom", option, status=2)
        assert f"{option} goes with C, not with product.loom" in refused.err
    assert "use a name that ends in .c, .cu, .loom, .json or .jsonl" in loom("export", "-o", "a.txt", status=2).err
    assert "loom-text" in loom("show", "--as", "nothing", status=2).err
    assert "is no CUDA target" in loom("show", "--as", "cuda", status=2).err
    assert "no NVIDIA GPU" in loom("export", "-o", "product.cu", status=2).err


@pytest.mark.compiler
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(
    ("types", "used"), [(("s8", "s8", "s32"), "mini/dot4x4"), (("f16", "bf16", "f32"), "scalar")]
)
def test_the_example_is_built_and_runs_right(mini: Cli, types: tuple[str, ...], used: str) -> None:
    sizes = [x for pair in ("m=7", "n=9", "k=10") for x in ("-D", pair)]
    dtypes = [x for name, dtype in zip(("a", "b", "acc"), types, strict=True) for x in ("-D", f"{name}={dtype}")]
    machine = ("-t", EXAMPLE / "mini.yaml", "--intrinsics", EXAMPLE / "dot.yaml")
    found = mini("tune", "matmul", *sizes, *dtypes, *machine, "-n", 3, "--json", "-q").json
    assert (found["device"], found["verified"]["ok"], found["trials"]["failed"]) == ("mini", True, {})
    assert used in (found["best"]["intrinsic"] or "scalar")
    assert mini("export", "-o", "product.cl").out.split() == ["product.cl"]
    assert "kernel void product(global " in (mini.folder / "product.cl").read_text()
