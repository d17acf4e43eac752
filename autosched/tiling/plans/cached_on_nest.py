"""Facts about a nest are asked for by every plan, every block of rows and every kernel; each is worked out once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from autosched.tiling.plans.nest import Nest

_Asked = ParamSpec("_Asked")
_Fact = TypeVar("_Fact")


def of_nest(
    work_out: Callable[Concatenate[Nest, _Asked], _Fact],
) -> Callable[Concatenate[Nest, _Asked], _Fact]:
    """`work_out`, asked once for each nest and further (hashable) arguments. The nest keeps the answer (`Nest.cache`),
    so nothing outlives it; answers are shared, and must not be changed."""
    name = f"{work_out.__module__}.{work_out.__qualname__}"

    @wraps(work_out)
    def remembered(nest: Nest, /, *asked: _Asked.args, **named: _Asked.kwargs) -> _Fact:
        key = (name, asked, *named.items())
        if key not in nest.cache:
            nest.cache[key] = work_out(nest, *asked, **named)
        fact: _Fact = nest.cache[key]
        return fact

    return remembered
