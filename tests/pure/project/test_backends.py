"""A kind of machine is described in one place: no code asks for an isa by name."""

from __future__ import annotations

import ast

import pytest
from support.paths import ROOT
from support.plug_ins import PlugIn

from autosched.backends import BACKENDS, CUDA_C, Backend, C, Language, backend_of, backends, host_backend, languages
from autosched.backends.plugged import plugged
from autosched.codegen.print_functions import PrintFunctions, functions_of
from autosched.errors import PluginError


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
    assert (engine.language, engine.device, engine.emits) == (None, None, "c")
    assert engine.c_flags({"its_own"}) == "", "no switch is guessed from a feature's name"
    assert not engine.is_cpu
    assert not engine.is_gpu


def test_machines_and_widest_vectors_are_found() -> None:
    """Every CPU that names its machines says what its vectors are without any feature."""
    for backend in BACKENDS.values():
        assert backend.isa in BACKENDS
        assert backend.vectors[-1][0] == ""
        assert all(name == name.lower() for name in backend.machines)


def test_each_language_names_what_prints_it() -> None:
    assert languages()["c"] == C
    assert languages()["cuda"] == CUDA_C
    assert all(isinstance(functions_of(one), PrintFunctions) for one in languages().values())
    assert len({one.suffix for one in languages().values()}) == len(languages())


def test_a_file_is_proposed_where_the_kernel_has_a_text() -> None:
    """C where its own device ran the kernel, CUDA also where the simulator did, nothing for what has no text."""
    x86, cuda, hip = (BACKENDS[isa] for isa in ("x86", "cuda", "hip"))
    assert [x86.export_suffix(device) for device in ("cpu", "simulator")] == [".c", None]
    assert [cuda.export_suffix(device) for device in ("cuda", "simulator")] == [".cu", ".cu"]
    assert hip.export_suffix("simulator") is None


def test_a_package_brings_a_backend(plug_in: PlugIn) -> None:
    own = Language("own", "Own", "machine of its own", ".own", functions="nowhere:FUNCTIONS")
    plug_in("autosched.backends", Backend("mine", language=own, machines=("mine-64",)))
    found = plugged("mine")
    assert found is not None
    assert found.language == own
    assert "mine" in [b.isa for b in backends()]
    with pytest.raises(PluginError, match="nowhere:FUNCTIONS"):
        functions_of(own)
    assert host_backend().isa in BACKENDS, "this machine is another"
    with pytest.raises(PluginError, match="is Language and not PrintFunctions"):
        functions_of(Language("c2", "C", "CPU", ".c2", functions="autosched.backends:C"))


@pytest.mark.parametrize("offered", [Backend("yours"), Backend, "mine"])
def test_what_is_no_backend_of_its_name_is_refused(plug_in: PlugIn, offered: object) -> None:
    plug_in("autosched.backends", offered)
    with pytest.raises(PluginError, match="no Backend of the isa 'mine'"):
        plugged("mine")
    assert {b.isa for b in backends()} == set(BACKENDS), "commands for other machines go on"
