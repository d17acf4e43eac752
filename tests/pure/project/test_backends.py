"""A kind of machine is described in one place: no code asks for an isa by name."""

from __future__ import annotations

import ast

from support.paths import ROOT

from autosched.backends import BACKENDS, backend_of


def test_no_code_compares_isas_with_names() -> None:
    """What differs between machines is a field of `Backend`."""
    found = []
    for path in sorted((ROOT / "autosched").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Compare):
                continue
            sides = (node.left, *node.comparators)
            isas = any(isinstance(n, ast.Attribute) and n.attr == "isa" for n in sides)
            names = {n.value for side in sides for n in ast.walk(side) if isinstance(n, ast.Constant)}
            if isas and names & set(BACKENDS):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not found


def test_an_isa_that_is_not_listed_is_only_simulated() -> None:
    engine = backend_of("matrix-engine")
    assert (engine.printer, engine.device, engine.emits) == (None, None, "c")
    assert not engine.is_cpu
    assert not engine.is_gpu


def test_machines_and_widest_vectors_are_found() -> None:
    """Every CPU that names its machines says what its vectors are without any feature."""
    for backend in BACKENDS.values():
        assert backend.isa in BACKENDS
        assert backend.vectors[-1][0] == ""
        assert all(name == name.lower() for name in backend.machines)
