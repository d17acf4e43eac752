"""How far off a learned model may be for a row: as far as it was for rows that it had not seen, and further away from
what was measured.

The spread of an ensemble is too narrow alone: its members share the rows, and so what the rows do not show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autosched.costmodel.protocol import Floats

_PRIOR_ROWS = 2.0  # rows' worth of belief in the deviation that is given for no measurements at all
_NEIGHBOURS = 8  # measured rows whose errors say most about a place
_LEAST, _MOST = 0.3, 4.0  # distances, in those between measured rows, between which variances grow with distance
_CONSTANT = 1e9  # stands for the scale of a column in which measured rows do not differ
_BLOCK = 4096  # rows whose distances are held at a time

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Doubt:
    """`rows` are the measured ones in standard units (`mean` and `scale` of the features), `usual` their mean distance
    to the nearest other. `variance` is that of an error (ln units, squared) about each of them, at that distance."""

    variance: Floats
    rows: Matrix
    mean: Matrix
    scale: Matrix
    usual: float

    @staticmethod
    def of(matrix: Matrix, errors: Floats, prior_sigma: float) -> Doubt:
        """From features of measured rows (one at least) and the errors of guesses made without them, NaN where a row
        was not left out. What errors are near a row counts for it, besides all errors and the prior."""
        present = np.isfinite(matrix)
        count = np.maximum(present.sum(axis=0), 1)
        mean = (np.where(present, matrix, np.float32(0.0)).sum(axis=0) / count).astype(np.float32)
        scale = np.sqrt((np.where(present, matrix - mean, np.float32(0.0)) ** 2).sum(axis=0) / count)
        scale = np.where(scale > 0, scale, _CONSTANT).astype(np.float32)
        rows = _standard(matrix, mean, scale)
        between = _squares(rows, rows)
        square, known = np.nan_to_num(np.asarray(errors, np.float64) ** 2), np.isfinite(errors)
        overall = (square.sum() + _PRIOR_ROWS * prior_sigma**2) / (known.sum() + _PRIOR_ROWS)
        near = np.argsort(between, axis=1, kind="stable")[:, :_NEIGHBOURS]
        around = square[near].sum(axis=1) + _PRIOR_ROWS * overall
        np.fill_diagonal(between, np.inf)
        usual = float(np.sqrt(between.min(axis=1)).mean()) if len(rows) > 1 else 0.0
        return Doubt(around / (known[near].sum(axis=1) + _PRIOR_ROWS), rows, mean, scale, usual)

    def at(self, matrix: Matrix) -> Floats:
        """The variance for each of these rows: that about the nearest measured row, which grows with the distance."""
        found = np.empty(len(matrix), np.float32)
        for top in range(0, len(matrix), _BLOCK):
            block = slice(top, top + _BLOCK)
            square = _squares(_standard(matrix[block], self.mean, self.scale), self.rows)
            nearest = np.argmin(square, axis=1)
            distance = np.sqrt(square[np.arange(len(nearest)), nearest])
            further = np.clip(distance / self.usual, _LEAST, _MOST) if self.usual > 0 else 1.0
            found[block] = self.variance[nearest] * further
        return found


def folds(rows: int, parts: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """For each row the part that is guessed without it: parts of one size, but for one row."""
    return rng.permutation(rows).astype(np.int64) % parts


def _standard(matrix: Matrix, mean: Matrix, scale: Matrix) -> Matrix:
    """In standard units; absent quantities stand at the mean."""
    return np.asarray(np.nan_to_num((matrix - mean) / scale, nan=0.0), np.float32)


def _squares(rows: Matrix, others: Matrix) -> Matrix:
    """Squared distances, shape (rows, others)."""
    square = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None, :] - 2 * rows @ others.T
    return np.asarray(np.maximum(square, 0.0), np.float32)
