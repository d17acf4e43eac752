"""A slice of an image as TMA walks over it: the map, and where the walk begins."""

from __future__ import annotations

from autosched.codegen.tree.kernel import Im2colWalk
from autosched.logic import Const, Int
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps.gpu.operands.tma_boxes import Pixels


def walk_of(pixels: Pixels) -> Im2colWalk:
    """The places that the window's corner passes."""
    dims = pixels.dimensions
    return Im2colWalk(tuple(d.lower for d in dims), tuple(d.upper for d in dims), tuple(d.step for d in dims))


def walked(pixels: Pixels) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents and strides of the map, the innermost dimension first."""
    dims = pixels.dimensions
    return (pixels.channels, *(d.extent for d in dims), pixels.count), (*(d.stride for d in dims), pixels.stride)


def corner(
    nest: Nest, pixels: Pixels, channels: NestAxis, positions: dict[str, Int], beyond: bool, late: bool
) -> tuple[tuple[Int, ...], tuple[Int, ...]]:
    """Coordinates of the first pixel's corner and the place inside the window; `positions` along the nest's axes.
    `beyond`: the first pixel may lie behind the last of the walk, as in the last blocks of clusters; `late`: the first
    channel behind the last one of a product, as in the last shares of a sum."""
    images: Int = Const(0)
    walking = next(a for a in nest.spatial if a.intrinsic_axis and _moves(pixels, a))
    if beyond and pixels.image not in {m for m, _, _ in walking.members}:
        # There is no such place, but an image behind the last one, which is all zeros.
        position = positions[walking.name]
        images = position // walking.extent * pixels.count
        positions = positions | {walking.name: position % walking.extent}
    values = nest.at(positions)
    image = (values[pixels.image] if pixels.image else Const(0)) + images
    corners = [values[d.member] - d.first if d.member else Const(0) for d in pixels.dimensions]
    found = [d.lower + c * d.step for d, c in zip(pixels.dimensions, corners, strict=True)]
    inside = tuple(substitute_int(d.inside, values) for d in pixels.dimensions)
    channel = positions[channels.name]
    if pixels.channels != channels.extent:
        start = substitute_int(pixels.group, values)
        # Behind a group lies the next one; there are zeros behind the last.
        channel = start + (channel + channel // channels.extent * pixels.channels if late else channel)
    return (channel, *found, image), inside


def _moves(pixels: Pixels, axis: NestAxis) -> bool:
    return any(d.member in {m for m, _, _ in axis.members} for d in pixels.dimensions)
