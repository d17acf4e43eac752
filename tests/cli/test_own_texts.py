"""C of a user's own instruction is checked before it leaves; a wrong one is not written, an unchecked one is said."""

from __future__ import annotations

import platform
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli.conftest import Cli, Done, make_cli
from support.own_instruction import OWN, RIGHT

from autosched.cli.stored import kernel_of, picked
from autosched.codegen.c.export.shared_library import compiler
from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.errors import SpecError
from autosched.store.sqlite import SqliteStore

PROGRAM = """\
def product(A: s32[n, k], B: s32[k, m], C: s32[n, m], *, n=6, k=5, m=8):
    for i, j in grid(n, m):
        C[i, j] = 0
        for q in range(k):
            C[i, j] += A[i, q] * B[q, j]
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.compiler,
    pytest.mark.skipif(not any(map(shutil.which, ("gcc", "clang", "cc"))), reason="no C compiler"),
]


def _own(cli: Cli, text: str, isa: str = "portable", more: str = "") -> None:
    (cli.folder / "own.yaml").write_text(OWN.format(isa=isa, more=more, text=text))


@pytest.fixture(scope="module")
def tuned_product(tmp_path_factory: pytest.TempPathFactory, home: Path) -> tuple[Cli, int]:
    """A study, and a trial of it with an instruction of one's own, whose C text nothing looks at while tuning."""
    cli = make_cli(tmp_path_factory.mktemp("product"), home).near()
    (cli.folder / "product.py").write_text(PROGRAM)
    _own(cli, RIGHT)
    cli("tune", "product.py", "--intrinsics", "own.yaml", "-i", "portable/axpy", "--trials", "8", "-d", "cpu")
    return cli, _trial(cli)


def _trial(cli: Cli) -> int:
    return next(t["number"] for t in cli("trials", "--json").json if "axpy" in t["plan"])


@pytest.fixture
def product(tuned_product: tuple[Cli, int]) -> Cli:
    return tuned_product[0]


@pytest.fixture
def export(tuned_product: tuple[Cli, int]) -> Iterator[Callable[..., Done]]:
    """`export -o kernel.c` of that trial, with more flags."""
    cli, trial = tuned_product
    _own(cli, RIGHT)
    yield lambda *more, status=0: cli("export", "--trial", trial, "-o", "kernel.c", *more, status=status)
    for file in cli.folder.glob("kernel*"):
        file.unlink()


def _files(cli: Cli) -> set[str]:
    return {p.name for p in cli.folder.glob("kernel*")}


@pytest.mark.parametrize("more", [(), ("--torch", "--shared", "--self-test")])
def test_right_text_leaves_in_silence(product: Cli, export: Callable[..., Done], more: tuple[str, ...]) -> None:
    assert "warning" not in export(*more).err
    assert {"kernel.c", "kernel.h"} <= _files(product)
    assert "+" in (product.folder / "kernel.c").read_text()


@pytest.mark.parametrize(
    ("text", "header", "said"),
    [
        ("{c} - {a} * {b}", "", "the C text gives"),
        (f"{RIGHT} +", "", "expected expression"),
        ("_mm_axpyy({a}, {b}, {c})", "", "_mm_axpyy"),
        (RIGHT, "header: imintrin.h", "imintrin.h"),
    ],
)
def test_wrong_text_is_refused(
    product: Cli, export: Callable[..., Done], text: str, header: str, said: str, tuned_product: tuple[Cli, int]
) -> None:
    _own(product, text, more=header)
    for more in ((), ("--torch",), ("--shared",)):
        done = export(*more, status=2)
        assert "own.yaml: the C text of portable/axpy is wrong" in done.err
        assert said in done.err
    assert not _files(product)
    assert "is wrong" in product("show", "--trial", tuned_product[1], "--as", "c").err
    assert "is wrong" not in product("show", "--trial", tuned_product[1], "--as", "loops").err


def test_it_is_checked_once(export: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log, command = tmp_path / "log", tmp_path / "logging-cc"
    command.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {shlex.join(compiler())} "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("CC", str(command))

    def compiled() -> list[str]:
        return [line for line in log.read_text().splitlines() if "--version" not in line]

    export()
    once = compiled()
    assert once
    export()
    assert compiled() == once


@pytest.mark.parametrize("command", ["no-such-compiler", "false"])
def test_what_cannot_be_checked_is_said(
    product: Cli, export: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("CC", command)
    assert f"portable/axpy was not checked: {command} compiles nothing" in export().err
    assert "kernel.c" in _files(product)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="code of another machine")
def test_another_machine_s_text_is_not_run_here(cli: Cli) -> None:
    cli = cli.near()
    (cli.folder / "product.py").write_text(PROGRAM)
    _own(cli, RIGHT, isa="x86", more="requires: [tbm]")
    described = cli("targets", "show", "x86-avx2").out
    (cli.folder / "chip.yaml").write_text(re.sub(r"( *- )f16c", r"\1f16c\n\1tbm", described))
    own = ("--intrinsics", "own.yaml", "-i", "x86/axpy")
    cli("tune", "product.py", *own, "-t", "chip.yaml", "-d", "simulator", "--trials", "8")
    export = ("export", "--trial", _trial(cli), "-o", "kernel.c")
    assert "x86/axpy was not checked: this machine lacks tbm; it compiles" in cli(*export).err
    _own(cli, RIGHT + " +", isa="x86", more="requires: [tbm]")
    assert "is wrong" in cli(*export, status=2).err


def test_python_refuses_it_too(product: Cli, tuned_product: tuple[Cli, int]) -> None:
    _own(product, "{c} - {a} * {b}")
    with SqliteStore(product.folder / "studies.db", read_only=True) as store:
        (record,) = store.studies()
        trial = picked(record, store.trials(record.name), tuned_product[1])
    lowered = kernel_of(record, trial)
    kernel = CompiledKernel(lowered, load(print_llvm(lowered)))
    with pytest.raises(SpecError, match="the C text of portable/axpy is wrong"):
        _ = kernel.source


def test_llvm_text_that_is_wrong_for_few_values_is_not_tuned(cli: Cli) -> None:
    """Only the least s16 times itself differs, which random data hardly ever holds."""
    cli = cli.near()
    (cli.folder / "product.py").write_text(PROGRAM.replace("A: s32", "A: s16").replace("B: s32", "B: s16").replace(
        "A[i, q] * B[q, j]", "s32(A[i, q]) * s32(B[q, j])"
    ))  # fmt: skip
    most = ", ".join(["i32 1073741823"] * 4)
    (cli.folder / "own.yaml").write_text(f"""\
isa: portable
intrinsics:
  - name: axpy
    semantics: |
      def axpy(a: s16[4], b: s16[4], c: s32[4]):
          for i in range(4):
              c[i] += s32(a[i]) * s32(b[i])
    numerics: {{accumulate: exact}}
    operands:
      a: {{broadcast: {{over: i}}}}
    emit:
      llvm: |
        %{{x}} = sext <4 x i16> {{a}} to <4 x i32>
        %{{y}} = sext <4 x i16> {{b}} to <4 x i32>
        %{{t}} = mul <4 x i32> %{{x}}, %{{y}}
        %{{m}} = call <4 x i32> @llvm.smin.v4i32(<4 x i32> %{{t}}, <4 x i32> <{most}>)
        add <4 x i32> %{{m}}, {{c}}
""")
    tune = ("tune", "product.py", "--intrinsics", "own.yaml", "-i", "portable/axpy", "--trials", "4", "-d", "cpu")
    said = cli(*tune, status=2).err
    assert "own.yaml: the LLVM text of portable/axpy is wrong" in said
    assert "the semantics" in said
    assert said.count("-32768") >= 2
