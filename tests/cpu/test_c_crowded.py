"""Register tiles that take all vector registers: no compiler keeps their sums on the stack inside the loop."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest
from support.plans import machine, plans_of

from autosched.codegen.c import print_c
from autosched.codegen.c.crowded import crowded
from autosched.codegen.kernel import Kernel
from autosched.codegen.lower import lower
from autosched.ir import workload

COMPILERS = [[name] for name in ("gcc", "clang", *(f"clang-{v}" for v in range(14, 24))) if which(name)]
COMPILERS += [[sys.executable, "-m", "ziglang", "cc"]] if find_spec("ziglang") else []


def tile(rows: int, columns: int, n: int) -> Kernel:
    """A product of f32 matrices in register tiles of AVX2, with a packed operand."""
    avx2 = machine(frozenset(["avx2", "fma"]), registers=16, vector_bytes=32)
    plan = plans_of(workload("matmul", m=32, n=n, k=24), avx2, only=("x86/vfmadd.f32.ymm",))[0]
    wanted = {"reg_i": rows, "reg_j": columns, "block_i": 0, "block_p": 0, "pack_b": "panel", "unroll": 1}
    found = (plan.space.schedule(int(row)) for row in plan.space.enumerate().ids)
    schedule = next(s for s in found if wanted.items() <= s.named.items() and s.named["inner"] == "rows")
    return lower(plan, schedule)


def test_a_tile_is_crowded_where_it_takes_every_register() -> None:
    assert crowded(tile(4, 3, 72))  # 12 sums, 3 and 1 operands, 16 registers
    assert not crowded(tile(6, 2, 72))


@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
@pytest.mark.parametrize("n", [72, 71])
def test_sums_stay_in_registers(compiler: list[str], n: int, tmp_path: Path) -> None:
    code = print_c(tile(4, 3, n))
    (tmp_path / f"{code.name}.h").write_text(code.header)
    (tmp_path / f"{code.name}.c").write_text(code.source)
    command = [*compiler, *code.flags.split(), "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-S", "-g0"]
    done = subprocess.run(
        [*command, f"{code.name}.c", "-o", "out.s"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    blocks = re.split(r"^\.?L\w*:", (tmp_path / "out.s").read_text(), flags=re.MULTILINE)
    inner = [lines_of_loop(block) for block in blocks if "vfmadd" in block]
    assert inner
    for loop in inner:
        spilt = [line for line in loop if re.search(r"ymm.*\(%r[sb]p\)|\(%r[sb]p\).*ymm", line)]
        assert not spilt, "\n".join(loop)


def lines_of_loop(block: str) -> list[str]:
    """The lines up to the last multiply-add: behind it sums are stored."""
    lines = block.splitlines()
    last = max(at for at, line in enumerate(lines) if "vfmadd" in line)
    return lines[: last + 3]
