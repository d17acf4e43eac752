"""Mappings on registers of as many rows as tiles of an axis need that are cut evenly: 56 pixels of a line are four of
14, not three of 16 and one of 8."""

from __future__ import annotations

from collections.abc import Mapping as Sizes
from dataclasses import replace
from math import prod

from autosched.tensorize.fewer_rows import FEWEST, axis_of_rows, with_rows
from autosched.tensorize.match_types import Mapping


def choose_tile_rows(mapping: Mapping, box: Sizes[str, tuple[int, int]]) -> Mapping:
    """The mapping with an instruction on fewer rows, where the axis on its rows needs no more of them; `box` has each
    program axis's lower bound and extent. There are as many tiles as before, so nothing else changes."""
    axis = axis_of_rows(mapping.intrinsic)
    if axis is None:
        return mapping
    extent = prod(box[name][1] for name in mapping.axes.get(axis.name, ()))
    tiles = -(-extent // axis.extent)
    rows = max(FEWEST, -(-extent // tiles))
    if rows >= axis.extent:
        return mapping
    padding = mapping.padding | {axis.name: (extent, tiles * rows)}
    return replace(mapping, intrinsic=with_rows(mapping.intrinsic, axis, rows), padding=padding)
