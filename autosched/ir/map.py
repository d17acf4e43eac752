"""`Map`: one type for every address relation (gather, im2col, packing, fragment, layout).

A map takes a point of a box domain to a tuple of quasi-affine coordinates; where its predicate is false the image is
absent (a padded zero on a read, nothing on a write).

>>> m = Map((("t", 32), ("v", 4)), (Var("t") // 4 + 8 * (Var("v") // 2), 2 * (Var("t") % 4) + Var("v") % 2))
>>> m.is_bijection_onto((16, 8))
True
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.logic import TRUE, Bool, Int, Var, all_of, evaluate, interval, to_z3
from autosched.logic.solver import proving, z3
from autosched.logic.walk import substitute_bool, substitute_int


@dataclass(frozen=True, slots=True)
class Map:
    """`domain` is (variable, extent) pairs, each variable from 0; `coordinates` and `predicate` range over them and
    over free outer variables."""

    domain: tuple[tuple[str, int], ...]
    coordinates: tuple[Int, ...]
    predicate: Bool = TRUE

    def __str__(self) -> str:
        points = ", ".join(f"{v} < {n}" for v, n in self.domain)
        image = ", ".join(str(c) for c in self.coordinates)
        return f"({points}) -> [{image}]" + ("" if self.predicate == TRUE else f" if {self.predicate}")

    @property
    def size(self) -> int:
        return prod(n for _, n in self.domain)

    def after(self, inner: Map) -> Map:
        """The composition: `inner`'s image, fed to this map's variables in order."""
        assert len(inner.coordinates) == len(self.domain)
        values = {v: c for (v, _), c in zip(self.domain, inner.coordinates, strict=True)}
        return Map(
            inner.domain,
            tuple(substitute_int(c, values) for c in self.coordinates),
            all_of(inner.predicate, substitute_bool(self.predicate, values)),
        )

    def points(self, **outer: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """All image points, shape (rank, *domain extents), and where the predicate holds (numpy reading)."""
        shape = tuple(n for _, n in self.domain)
        grid = np.indices(shape, dtype=np.int64) if shape else np.zeros((0,), np.int64)
        env: dict[str, Any] = {v: grid[d] for d, (v, _) in enumerate(self.domain)} | outer
        image = np.stack([np.broadcast_to(evaluate(c, env), shape) for c in self.coordinates])
        return image, np.broadcast_to(evaluate(self.predicate, env), shape)

    @proving
    def is_bijection_onto(self, shape: tuple[int, ...]) -> bool:
        """Whether the map takes its domain one to one onto the box `shape`.

        Equal sizes, an image inside the box (intervals, else z3) and injectivity (z3: no two points with one image)
        together prove it.
        """
        if self.size != prod(shape) or len(self.coordinates) != len(shape):
            return False
        first, second = ({v: z3.Int(f"{v}{tag}") for v, _ in self.domain} for tag in ("", "'"))
        solver = z3.Solver()
        for env in (first, second):
            for v, n in self.domain:
                solver.add(env[v] >= 0, env[v] < n)
        images = [[to_z3(c, env) for c in self.coordinates] for env in (first, second)]
        solver.push()
        solver.add(z3.Or(*(z3.Or(c < 0, c >= n) for c, n in zip(images[0], shape, strict=True))))
        if solver.check() != z3.unsat:
            return False
        solver.pop()
        solver.add(*(a == b for a, b in zip(*images, strict=True)))
        solver.add(z3.Or(*(first[v] != second[v] for v, _ in self.domain)))
        return bool(solver.check() == z3.unsat)

    def bounds(self, ranges: dict[str, tuple[int, int]] | None = None) -> tuple[tuple[int, int], ...]:
        """Inclusive bounds of each coordinate; `ranges` gives those of the free outer variables."""
        box = {v: (0, n - 1) for v, n in self.domain} | (ranges or {})
        return tuple(interval(c, box) for c in self.coordinates)


def identity(names: tuple[str, ...], shape: tuple[int, ...]) -> Map:
    """The map of a box onto itself."""
    return Map(tuple(zip(names, shape, strict=True)), tuple(Var(n) for n in names))
