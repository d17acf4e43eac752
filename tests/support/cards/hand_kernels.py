"""CUDA kernels written by hand, right ones and ones with a mistake planted, for the emulator."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from autosched.codegen.cuda.emulation import Emulated, EmulationError, Unit, Violation, build
from autosched.codegen.cuda.launch import (
    Argument,
    BufferArgument,
    Dim3,
    Launch,
    LaunchPlan,
    MapArgument,
    TensorMapEncoding,
)
from autosched.ir import parse
from autosched.tensorize.intrinsic import Intrinsic

Arrays = dict[str, npt.NDArray[Any]]

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler"
)


@dataclass(frozen=True)
class Hand:
    """A file of one kernel, called as its program; arguments are the program's tensors, but those of `maps`, which are
    passed as tensor maps in their places."""

    text: str
    program: str
    grid: Dim3
    block: Dim3
    shared_bytes: int = 0
    cluster: Dim3 = (1, 1, 1)
    maps: tuple[TensorMapEncoding, ...] = ()
    intrinsics: tuple[Intrinsic, ...] = ()

    def unit(self, text: str, file: str) -> Unit:
        program = parse(self.program)
        name = program.name
        mapped = {m.buffer: m.name for m in self.maps}
        arguments: list[Argument] = []
        for p in program.parameters:
            if p in mapped:
                arguments.append(MapArgument(mapped[p]))
            else:
                arguments.append(BufferArgument(p, program.tensors[p].dtype, p in program.written))
        launch = Launch(name, self.grid, self.block, self.shared_bytes, tuple(arguments), self.cluster)
        return Unit(text, file, self.intrinsics, LaunchPlan(name, "sm_90a", (launch,), maps=self.maps), program)


@dataclass(frozen=True)
class Planted:
    """A mistake: what stands in the place of `right`, the kind of violation (`a|b` where it depends on who comes
    first), and words of the line that is blamed."""

    name: str
    right: str
    wrong: str
    kind: str
    line: str
    detail: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.kind.split("|"))


def build_all(hand: Hand, mistakes: Sequence[Planted]) -> dict[str, Emulated]:
    """The right kernel under "" and each wrong one under its name, compiled together."""
    texts = {"": hand.text}
    for m in mistakes:
        assert hand.text.count(m.right) == 1, m.name
        texts[m.name] = hand.text.replace(m.right, m.wrong)
    units = [hand.unit(text, f"{name.replace(' ', '_') or 'right'}.cu") for name, text in texts.items()]
    return dict(zip(texts, build(units), strict=True))


def found(emulated: Emulated, arrays: Arrays, seeds: Sequence[int] = (0, 1, 2, 3)) -> tuple[Violation, str]:
    """The first violation under some seed, and the text of the line that it names."""
    for seed in seeds:
        try:
            emulated.run(arrays, seed=seed)
        except EmulationError as error:
            return error.violation, error.location.text if error.location else ""
    raise AssertionError("nothing was found")


def assert_found(mistake: Planted, emulated: Emulated, arrays: Arrays, seeds: Sequence[int] = (0, 1, 2, 3)) -> None:
    """The mistake is found under some seed, for what it is and where it is."""
    violation, line = found(emulated, arrays, seeds)
    assert violation.kind in mistake.kinds
    assert mistake.line in line
    assert mistake.detail in violation.detail


def halves(*shape: int, seed: int = 0) -> npt.NDArray[np.float16]:
    """Small whole numbers, whose sums are exact."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float16)
