"""Peers: the same computation by libraries, one file each. A library that is missing leaves a note, nothing else.

`const` operands are packed before the timed call where the task allows it and the library can. Results lie in the
program's own order on every side: a blocked layout that suits a library would have to be converted by somebody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.peers import numpy_peer, onednn, onnx_runtime, torch_peer
from benchmarks.peers.task import Contender, Task, UnavailableError

__all__ = ["FAMILIES", "Contender", "Task", "UnavailableError", "contenders", "versions"]

FAMILIES: dict[str, Callable[[Task], Iterator[Contender]]] = {
    "PyTorch": torch_peer.contenders,  # first: oneDNN then shares its OpenMP runtime
    "oneDNN": onednn.contenders,
    "ONNX Runtime": onnx_runtime.contenders,
    "OpenBLAS": numpy_peer.contenders,
}


def contenders(task: Task) -> tuple[list[Contender], dict[str, str]]:
    """Every library's ways to compute the task, and why others have none, by family."""
    found: list[Contender] = []
    notes: dict[str, str] = {}
    for family, make in FAMILIES.items():
        before = len(found)
        try:
            found += make(task)
        except UnavailableError as missing:
            notes[family] = str(missing)
        except Exception as error:  # a library's own failure is a fact about the library
            notes[family] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        if len(found) == before:
            notes.setdefault(family, "has no such operation")
    return found, notes


def versions() -> dict[str, str]:
    """Version of every library, or why it has none."""
    modules = (numpy_peer, torch_peer, onednn, onnx_runtime)
    return {name: version for module in modules for name, version in module.version().items()}
