"""A catalogue builds only the instructions that a command asks for, and reads the entry points of packages once."""

from __future__ import annotations

from dataclasses import dataclass, field

from autosched.backends import language_of_text
from autosched.backends.plugged import _isas_on
from autosched.cli.commands.match import _every
from autosched.machine.catalogue import load_target
from autosched.machine.offered import offered
from autosched.tensorize.intrinsic import Intrinsic, Outline
from autosched.tensorize.spec.catalogue import Catalogue, _Deferred


@dataclass
class Recipe:
    """An intrinsic that tells when it is built."""

    made: Intrinsic
    built: list[str] = field(default_factory=list)

    def build(self) -> Intrinsic:
        self.built.append(self.made.name)
        return self.made

    def outline(self) -> Outline:
        return self.made.outline


def test_instructions_of_other_machines_are_not_built() -> None:
    every, built = Catalogue.builtin(), list[str]()
    for name in ("nvidia-h200", "x86-avx2", "gemmini"):
        machine = load_target(name)
        known = Catalogue(_Deferred({n: Recipe(every[n], built) for n in every}))
        chosen = _every(known, machine)
        assert [i.name for i in offered(chosen, machine)] == [i.name for i in offered(list(every.values()), machine)]
        assert built == [i.name for i in chosen]
        assert len(built) < len(every)
        built.clear()
    assert len(_every(every, None)) == len(every)


def test_packages_are_looked_at_once() -> None:
    for _ in range(3):
        assert language_of_text("llvm") is None
    misses = _isas_on.cache_info().misses
    for name in ("llvm", "c", "cuda", "nothing"):
        language_of_text(name)
    assert _isas_on.cache_info().misses == misses
