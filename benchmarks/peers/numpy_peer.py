"""numpy, whose products are OpenBLAS's. It has no packing; threads are set by the environment (see `contest`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.peers.shapes import product
from benchmarks.peers.task import Contender, Task, UnavailableError, tolerance

FAMILY = "OpenBLAS"


def version() -> dict[str, str]:
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {"numpy": np.__version__, "BLAS of numpy": f"{blas['name']} {blas['version']}"}


def contenders(task: Task) -> Iterator[Contender]:
    found = product(task)
    if found is None or found.after or found.a.dtype not in (np.float32, np.float64) or found.out not in ("f32", "f64"):
        raise UnavailableError("no product of one float type")
    out = np.empty(found.shape, found.a.dtype)
    yield Contender(
        "numpy", FAMILY, lambda: np.matmul(found.a, found.b, out=out), lambda: out, tolerance=tolerance(found.out)
    )
