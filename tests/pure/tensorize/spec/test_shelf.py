"""The shelf parses a built-in file when a caller asks for a name that the file may describe, and misses no name."""

from __future__ import annotations

from fnmatch import fnmatchcase
from importlib import resources
from math import inf

import pytest

from autosched.errors import UnknownNameError
from autosched.tensorize.spec.catalogue import Catalogue, _Deferred
from autosched.tensorize.spec.shelf import File, Shelf
from autosched.yaml_lines import parse_yaml


def _shelf() -> Shelf:
    folders = [f for f in resources.files("autosched.intrinsics").iterdir() if f.is_dir()]
    files = [(d.name, f) for d in folders for f in d.iterdir() if f.name.endswith(".yaml")]
    return Shelf(File(isa, f"intrinsics/{isa}/{f.name}", f) for isa, f in files)


def _read(shelf: Shelf) -> set[str]:
    return {f.place for f in shelf.files if "entries" in vars(f)}


def test_every_name_is_found_in_its_file_by_what_is_seen_without_parsing():
    shelf = _shelf()
    assert len(shelf) == len(Catalogue.builtin()) > 1000
    for file in shelf.files:
        assert {e.head.isa for e in file.entries.values()} == {file.isa}
        for name in file.entries:
            assert all(map(file.may_hold, (name, name[:-1] + "?", name.split("/")[1])))
            assert shelf[name].name == name


@pytest.mark.parametrize("pattern", ["x86/vpdpbusd.zmm", "vpdpbusd.[xyz]mm", "arm/*dot*", "x8*", "*f16*", "cuda/mma.*"])
def test_a_glob_finds_what_it_finds_among_all(pattern):
    shelf = _shelf()
    known = Catalogue(_Deferred(shelf))
    wide = pattern if "/" in pattern else f"*/{pattern}"
    everything = [n for n in Catalogue.builtin() if fnmatchcase(n, pattern) or fnmatchcase(n, wide)]
    assert everything
    assert sorted(o.name for o in known.outlines([pattern])) == sorted(everything)


def test_few_files_are_read_for_one_instruction_and_none_of_another_isa():
    shelf = _shelf()
    known = Catalogue(_Deferred(shelf)).with_intrinsics([])
    assert [i.name for i in known.select(["x86/vpdpbusd.zmm"])] == ["x86/vpdpbusd.zmm"]
    assert known["x86/vpdpbusd.zmm"].isa == "x86"
    assert not [n for n in ("x86/vpdpbusd", "vpdpbusd.zmm") if n in known]
    read = _read(shelf)
    assert "intrinsics/x86/avx512_vnni.yaml" in read
    assert len(read) < 8
    assert all(place.startswith("intrinsics/x86/") for place in read)
    assert known.of_isa("riscv")
    assert _read(shelf) - read == {"intrinsics/riscv/rvv.yaml"}
    with pytest.raises(UnknownNameError, match="vpdpbusd"):
        known.select(["x86/vpdpbusd"])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("~", None), ("null", None), ("Null", None), ("", None), ("true", True), ("FALSE", False)],
        *[("on", "on"), ("no", "no"), ("nul", "nul"), ("7a", "7a"), (".", "."), ("'-'", "-"), ("''", "")],
        *[("7", 7), ("-7", -7), ("+7", 7), ("0x1F", 31), ("0o17", 15), ("1_000", 1000)],
        *[(".5", 0.5), ("5.", 5.0), ("-.5e3", -500.0), ("1e3", 1000.0), (".inf", inf), ("-.INF", -inf)],
    ],
)
def test_plain_scalars_are_of_the_kinds_of_yaml_12(text, value):
    found = parse_yaml(f"a: {text}", "x.yaml").data["a"]
    assert found == value
    assert type(found) is type(value)
