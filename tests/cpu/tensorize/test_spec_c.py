"""The C text of intrinsics computes what their semantics says, where a C compiler is present."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from autosched.machine.host import host_features
from autosched.tensorize.check.native import from_register_bytes, register_bytes
from autosched.tensorize.check.values import agree, cases
from autosched.tensorize.numerics.model import issue
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.emit import render_c

FEATURES = host_features()
COMPILER = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
pytestmark = [
    pytest.mark.compiler,
    pytest.mark.skipif(COMPILER is None, reason="no C compiler"),
]


def _function(number, made):
    loads = [
        f"  {o.registers['c']} {o.name}; memcpy(&{o.name}, p{k}, sizeof {o.name});"
        for k, o in enumerate(made.operands.values())
    ]
    names = {n: n for n in made.operands}
    written = made.accumulator.name
    place = list(made.operands).index(written)
    parameters = ", ".join(f"char *p{k}" for k in range(len(names)))
    body = [*loads, f"  {written} = {render_c(made, names)};", f"  memcpy(p{place}, &{written}, sizeof {written});"]
    loop = ", ".join(f"blob + at[{k}]" for k in range(len(names)))
    return "\n".join(
        [
            f"static void issue{number}({parameters}) {{",
            *body,
            "}",
            f"void run{number}(char *blob, const long *at, long step, long cases) {{",
            f"  for (long n = 0; n < cases; n++, blob += step) issue{number}({loop});",
            "}",
        ]
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """All C texts that this machine can run, in one shared library, and the intrinsics by number."""
    known = Catalogue.builtin()
    here = [known[o.name] for o in known.outlines() if "c" in o.printers and o.requires <= FEATURES]
    usable = [i for i in here if i.matrices is None]  # those of numbered registers are no functions
    headers = sorted({i.header for i in usable if i.header})
    source = "\n".join(["#include <string.h>", *(f"#include <{h}>" for h in headers)])
    source += "\n" + "\n".join(_function(n, i) for n, i in enumerate(usable))
    folder = tmp_path_factory.mktemp("c")
    (folder / "all.c").write_text(source)
    command = [
        COMPILER,
        "-O1",
        "-march=native",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Wno-psabi",
        "-Werror",
    ]
    built = subprocess.run([*command, "all.c", "-o", "all.so"], cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    return ctypes.CDLL(str(folder / "all.so")), usable


def test_c_agrees_with_the_semantics(library):
    code, usable = library
    assert len(usable) >= 36  # the portable ones at least
    wrong = []
    for number, made in enumerate(usable):
        arrays = cases(made, np.random.default_rng(number))
        parts = [register_bytes(o, arrays[o.name]) for o in made.operands.values()]
        sizes = [p.shape[1] for p in parts]
        starts = np.cumsum([0, *sizes[:-1]]).astype(np.int64)
        blob = np.ascontiguousarray(np.concatenate(parts, axis=1))
        pointer = starts.ctypes.data_as(ctypes.c_void_p)
        step, count = ctypes.c_long(blob.shape[1]), ctypes.c_long(len(blob))
        getattr(code, f"run{number}")(blob.ctypes.data_as(ctypes.c_void_p), pointer, step, count)
        place = [o.written for o in made.operands.values()].index(True)
        rows = blob[:, starts[place] : starts[place] + sizes[place]]
        got = from_register_bytes(made.accumulator, np.ascontiguousarray(rows))
        if not agree(issue(made, arrays), got, made).all():
            wrong.append(made.name)
    assert not wrong
