"""Arguments of a wrong type: what a function's annotations say is what is accepted, and refused in the same words
everywhere: which argument, what was given, what is wanted."""

from __future__ import annotations

import inspect
import operator
import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np

from autosched.errors import AutoschedError, UsageError

P = ParamSpec("P")
R = TypeVar("R")

_WORDS: dict[Any, tuple[str, str]] = {
    str: ("a text", "texts"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("True or False", "True or False"),
    Path: ("a path", "paths"),
    type(None): ("None", "None"),
}
"""One and several of a type, in words."""
_COLLECTED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def checked(
    later: Mapping[str, str] | None = None, but: Collection[str] = (), hints: Mapping[Any, str] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that refuses arguments which are not what it is annotated with, by UsageError.

    `later` says where names of annotations are (`package.module:NAME`) that the function's module does not import; they
    are imported when such an argument is given. Arguments named in `but` are looked at by the function itself, as are
    `*arguments` and `**options`. `hints` say of a type how one is made. What has its default is not looked at.
    An AutoschedError leaves it without the frames inside, but with its cause.

    >>> @checked()
    ... def repeated(times: int, what: str | None = None) -> None: ...
    >>> repeated("3")
    Traceback (most recent call last):
    autosched.errors.UsageError: times is '3', and must be a whole number
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def taking(*arguments: P.args, **options: P.kwargs) -> R:
            try:
                bound = signature.bind(*arguments, **options).arguments
            except TypeError:
                return function(*arguments, **options)  # which says it as Python does
            for name, value in bound.items():
                parameter = signature.parameters[name]
                if name in but or value is parameter.default or parameter.kind in _COLLECTED:
                    continue
                check(name, value, annotation(function, name, later or {}), hints or {})
            try:
                return function(*arguments, **options)
            except AutoschedError as error:  # says all itself: the frames between it and the caller say nothing more
                raise error.with_traceback(None) from error.__cause__

        return taking

    return decorated


def annotation(function: Any, name: str, later: Mapping[str, str]) -> Any:
    """What a parameter of a function, or a field of a class, is annotated with, as a type."""
    text = function.__annotations__.get(name, "Any")
    if not isinstance(text, str):
        return text
    return eval(text, {}, _Names(vars(inspect.getmodule(function)), later))


class _Names(dict[str, Any]):
    """A module's names, and those that are imported when they are asked for."""

    def __init__(self, module: Mapping[str, Any], later: Mapping[str, str]) -> None:
        super().__init__(module)
        self.later = later

    def __missing__(self, name: str) -> Any:
        if name not in self.later:
            raise KeyError(name)
        module, _, attribute = self.later[name].partition(":")
        return getattr(import_module(module), attribute)


def check_fields(given: Any, but: Collection[str] = ()) -> None:
    """UsageError where a field of a dataclass, but for some, holds what it is not annotated with."""
    for kind in type(given).__mro__:
        for name in vars(kind).get("__annotations__", ()):
            if name not in but and hasattr(given, name):
                check(name, getattr(given, name), annotation(kind, name, {}))


def check(name: str, value: object, wanted: Any, hints: Mapping[Any, str] | None = None) -> None:
    """UsageError where a value is not of a type: it names the argument, and of a list the element."""
    if fits(value, wanted):
        return
    hints = hints or {}
    for kind in _kinds(wanted):
        inner = get_args(kind)[:1]
        if _lists(kind) and _is_list(value) and isinstance(value, Collection) and inner:
            for k, element in enumerate(value):
                check(f"{name}[{k}]", element, inner[0], hints)
        if _maps(kind) and isinstance(value, Mapping):
            wrong = next(key for key in value if not fits(key, inner[0]))
            raise UsageError(f"{name} has the key {shown(wrong)}, and keys must be {words(inner[0], several=True)}")
    hint = next((hints[kind] for kind in _kinds(wanted) if kind in hints), None)
    raise UsageError(f"{name} is {shown(value)}, and must be {words(wanted)}", hint=hint)


def fits(value: object, wanted: Any) -> bool:
    """Whether a value is of a type; what is no class is taken as it is.

    >>> fits(True, int), fits(np.int64(3), int), fits(3, float), fits("abc", list[str]), fits(("a", 3), list[str])
    (False, True, True, False, False)
    """
    origin = get_origin(wanted)
    if origin in (Union, types.UnionType):
        return any(fits(value, kind) for kind in get_args(wanted))
    if origin is Literal:
        return value in get_args(wanted)
    if origin is Callable:
        return callable(value)
    if _lists(wanted):
        inner = get_args(wanted)[:1]
        elements = value if inner and isinstance(value, Collection) else ()
        return _is_list(value) and all(fits(element, inner[0]) for element in elements)  # an iterator is not consumed
    if _maps(wanted) and (inner := get_args(wanted)[:1]):
        return isinstance(value, Mapping) and all(fits(key, inner[0]) for key in value)
    wanted = origin or wanted
    if wanted is None:
        return value is None
    if wanted is int:
        return not isinstance(value, bool) and _is_whole(value)
    if wanted is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if wanted is bool:
        return isinstance(value, bool | np.bool_)
    if wanted is Path:
        return isinstance(value, os.PathLike)
    if not isinstance(wanted, type) or wanted is Any:
        return True
    if getattr(wanted, "_is_protocol", False):
        return all(hasattr(value, name) for name in _members(wanted))
    return isinstance(value, wanted)


def words(wanted: Any, several: bool = False) -> str:
    """A type in words.

    >>> words(str | Path | None), words(float | list[str])
    ('a text, a path or None', 'a number or a list of texts')
    """
    *first, last = [_word(kind, several) for kind in _kinds(wanted)]
    apart = ", or" if any(" or " in word for word in first) else " or"
    return f"{', '.join(first)}{apart} {last}" if first else last


def shown(value: object) -> str:
    """A value in a line of a message."""
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}…"


def _word(kind: Any, several: bool) -> str:
    if _lists(kind):
        inner = get_args(kind)[:1]
        return ("lists" if several else "a list") + (f" of {words(inner[0], several=True)}" if inner else "")
    origin = get_origin(kind) or kind
    if origin is Callable:
        return "functions" if several else "a function"
    if _maps(kind):
        return "mappings of names to values" if several else "a mapping of names to values"
    if origin is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if kind is None:
        return "None"
    if kind in _WORDS:
        return _WORDS[kind][several]
    name = getattr(origin, "__name__", str(kind))
    article = "an" if name[0] in "AEIOU" else "a"
    many = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return many if several else f"{article} {name}"


def _kinds(wanted: Any) -> tuple[Any, ...]:
    return get_args(wanted) if get_origin(wanted) in (Union, types.UnionType) else (wanted,)


def _lists(kind: Any) -> bool:
    """Whether a type is that of a list, or of whatever has elements in turn."""
    return (get_origin(kind) or kind) in (list, tuple, set, frozenset, Sequence, Collection, Iterable)


def _maps(kind: Any) -> bool:
    return (get_origin(kind) or kind) in (dict, Mapping)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _is_whole(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:  # the class of integers, or an array of several, which have __index__, too
        return False
    return True


def _members(protocol: type) -> set[str]:
    """What a protocol asks for."""
    asked = [name for kind in protocol.__mro__ if getattr(kind, "_is_protocol", False) for name in vars(kind)]
    return {name for name in asked if not name.startswith("_") or name == "__call__"}
