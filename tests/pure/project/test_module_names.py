"""Modules of one room, and files of tests, have names of their own: who looks for `matrices.py` finds one."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import autosched

TESTS = Path(__file__).parents[2]
ALIKE = (
    ("codegen/c", "codegen/c_like", "codegen/cuda", "codegen/interpret", "codegen/llvm"),
    ("device/cpu", "device/cuda", "device/simulator"),
)
"""Folders beside each other, of a language or a device each, in which one name is one role."""
EARLIER = {
    "costmodel/clock.py",
    "search/recorded.py",
    "search/recorder.py",
    "tiling/dependence.py",
    "tiling/epilogue.py",
    "tiling/request.py",
}
"""Documented places of before, which pass on what stands elsewhere."""
SAME = {"tile_loops"}
"""One idea in two folders: as part of a plan, and as the step that decides about it."""


def test_modules_of_a_room_have_names_of_their_own() -> None:
    root = Path(autosched.__file__).parent
    found: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        if len(place.parts) > 1 and path.name != "__init__.py" and place.as_posix() not in EARLIER:
            found[place.parts[0], path.stem].append(place)
    twice = {name: places for (_, name), places in found.items() if len(places) > 1 and not _alike(places)}
    assert {name: places for name, places in twice.items() if name not in SAME} == {}
    assert set(twice) >= SAME


def test_files_of_tests_have_names_of_their_own() -> None:
    """pytest imports files outside packages by their bare names and collects one of two that are called alike."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        found[path.name].append(path.relative_to(TESTS).as_posix())
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_documented_places_of_before_hold_no_code() -> None:
    root = Path(autosched.__file__).parent
    for name in EARLIER:
        lines = (root / name).read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 5, name
        assert any(line.startswith("from autosched.") for line in lines), name


def _alike(places: list[Path]) -> bool:
    """Whether each is of another language or device."""
    for folders in ALIKE:
        of = ["/".join(place.parts[:2]) for place in places]
        if set(of) <= set(folders) and len(set(of)) == len(of):
            return True
    return False
