"""`Chain`: parts that run one after the other for a few rows at a time, so that what they hand on stays in a cache.

for each tile of rows of i:           (threads share these)
  H_tile = X[tile, :] W1
  Y[tile, :] = H_tile W2
"""

from __future__ import annotations

from dataclasses import dataclass

from autosched.tiling.plans.step_names import StepNames


@dataclass(frozen=True)
class Handed:
    """An intermediate that only the chain's stages touch, each iteration of the shared axis its own place along the
    `dimension`: a tile of it is enough for each thread."""

    tensor: str
    dimension: int


@dataclass(frozen=True)
class Chain:
    """Consecutive tensor parts inside a loop over tiles of an axis that all of them have, proved independent for all of
    them together. `axes` names it for the stage of each part (its loops may have other names in each), `extent` is its
    length. `written` are the tensors that the chain computes, those of `handed` among them."""

    axes: dict[str, str]
    extent: int
    written: frozenset[str]
    handed: tuple[Handed, ...]
    names: StepNames

    @property
    def title(self) -> str:
        return f"in a chain over {next(iter(self.axes.values()))}"
