"""YAML that remembers where it was written, and pydantic errors that say `file:line` and the nearest known key.

Used by target and intrinsic files. Only plain data is read: no tags, no code. Numbers, booleans and null follow
YAML 1.2 (`on` and `no` are strings).

>>> document = parse_yaml("a: 1\\nb: [2, 3]\\n", "x.yaml")
>>> document.data, str(document.location("b", 1))
({'a': 1, 'b': [2, 3]}, 'x.yaml:2:8')
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import CollectionEndEvent, CollectionStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from autosched.errors import Location, SpecError, nearest

Path: TypeAlias = tuple[str | int, ...]
ModelT = TypeVar("ModelT", bound=BaseModel)
NODE_LIMIT = 200_000
"""More values than any honest file holds; stops alias bombs, whose expansion is exponential."""
MAX_DEPTH = 64
_DEEP = f"nested deeper than {MAX_DEPTH} levels"
MAX_CHARACTERS = 2_000_000
MAX_SHOWN = 200
_TAG = "tag:yaml.org,2002:"
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Document:
    """Plain data with places. `keys` and `values` take a path to (line, column), both from 1."""

    file: str
    data: Any
    lines: tuple[str, ...]
    keys: dict[Path, tuple[int, int]] = field(repr=False)
    values: dict[Path, tuple[int, int]] = field(repr=False)

    def location(self, *path: str | int, key: bool = False) -> Location:
        """Where the value at `path` stands (its key with `key=True`); where absent, the nearest enclosing place."""
        table = self.keys if key else self.values
        for end in range(len(path), -1, -1):
            if (place := table.get(path[:end])) or (place := self.values.get(path[:end])):
                line, column = place
                text = self.lines[line - 1] if line <= len(self.lines) else ""
                return Location(self.file, line, column, text)
        return Location(self.file, 1)

    def error(self, message: str, *path: str | int, key: bool = False, hint: str | None = None) -> SpecError:
        """A SpecError at `path`."""
        return SpecError(message, hint=hint, location=self.location(*path, key=key))


def parse_yaml(text: str, file: str) -> Document:
    """Read one YAML document; `file` names it in errors. SpecError on bad syntax, tags, duplicate or non-text keys, and
    on texts that are too long or nested too deeply."""
    if not isinstance(text, str):
        raise SpecError(f"a YAML text is a text, not {type(text).__name__}", location=Location(file, 1))
    if len(text) > MAX_CHARACTERS:
        raise SpecError(f"the file has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    lines = tuple(text.splitlines())
    try:
        _check_nesting(text, file, lines)
        root = yaml.compose(text, Loader=_Loader)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        shown = lines[line - 1] if line <= len(lines) and len(lines[line - 1]) <= MAX_SHOWN else ""
        place = Location(file, line, mark.column + 1 if mark else 1, shown)
        said = str(error.problem or error.context)
        if "nesting depth" in said:  # libyaml's own limit, which it meets while it looks ahead
            raise SpecError(_DEEP, location=place) from None
        raise SpecError(f"not valid YAML: {said}", location=place) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise SpecError(f"not valid YAML: {str(error).splitlines()[0]}", location=Location(file, 1)) from None
    document = Document(file, None, lines, {}, {})
    if root is None:
        raise SpecError("the file is empty", location=Location(file, 1))
    data = _construct(root, (), document, _NodesLeft())
    return Document(file, data, lines, document.keys, document.values)


def validate(model: type[ModelT], document: Document, path: Path = ()) -> ModelT:
    """The part of `document` at `path` as `model`; SpecError at the topmost offending line otherwise."""
    data = document.data
    for step in path:
        data = data[step]
    try:
        return model.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        # A misspelt key usually also makes a missing one: the misspelling is the thing to tell.
        details = [e for e in details if e["type"] == "extra_forbidden"] or details
        found = [_explain(model, document, path, e) for e in details]
        raise min(found, key=lambda e: (e.location.line, e.location.column) if e.location else (0, 0)) from None


@dataclass
class _NodesLeft:
    left: int = NODE_LIMIT


_Parser = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # libyaml is twenty times faster, and not in every build


_DIGITS = [*"0123456789"]
_PLAIN = (
    ("null", ["", "~", "n", "N"], re.compile(r"(~|null|Null|NULL|)$")),
    ("bool", [*"tTfF"], re.compile(r"(true|True|TRUE|false|False|FALSE)$")),
    ("int", [*"-+", *_DIGITS], re.compile(r"([-+]?[0-9][0-9_]*|0o[0-7_]+|0x[0-9a-fA-F_]+)$")),
    ("float", [*"-+.", *_DIGITS], re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?$")),
    ("float", [*"-+."], re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$")),
)
"""Kinds of plain scalars that are no texts, with the characters they begin with (\"\": the empty one)."""


class _Loader(_Parser):  # type: ignore[misc, valid-type]  # one of two classes, known only on the machine
    """Plain scalars by the core schema of YAML 1.2 (section 10.3.2), where PyYAML would follow 1.1 (`on` is true)."""

    yaml_implicit_resolvers = {  # by the first character of a scalar, so that most texts are compared with nothing
        first: [(f"{_TAG}{kind}", pattern) for kind, firsts, pattern in _PLAIN if first in firsts]
        for first in {first for _, firsts, _ in _PLAIN for first in firsts}
    }


def _check_nesting(text: str, file: str, lines: tuple[str, ...]) -> None:
    """SpecError where collections are nested too deeply. Composing recurses, in C too, and takes time that is quadratic
    in the depth of brackets; events come one by one, and reading them ends at the first that is too deep."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            line, column = event.start_mark.line, event.start_mark.column
            shown = lines[line][:MAX_SHOWN] if line < len(lines) and column < MAX_SHOWN else ""
            place = Location(file, line + 1, column + 1, shown)
            raise SpecError(_DEEP, location=place)


def _construct(node: Node, path: Path, document: Document, budget: _NodesLeft) -> Any:
    budget.left -= 1
    document.values[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
    if budget.left < 0 or len(path) > MAX_DEPTH:
        raise document.error("too deep or too large", *path, hint="write the values out instead of using aliases")
    if not str(node.tag).startswith(_TAG) or "python/" in str(node.tag):
        hint = "a file holds text, numbers, lists and mappings only"
        raise document.error(f"tag {node.tag} is not plain data", *path, hint=hint)
    match node:
        case MappingNode():
            found: dict[str, Any] = {}
            for key_node, value_node in node.value:
                place = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
                if not isinstance(key_node, ScalarNode):
                    document.keys[(*path, "?")] = place
                    raise document.error("keys must be plain text", *path, "?", key=True)
                key = str(key_node.value)
                document.keys[(*path, key)] = place
                if key in found:
                    raise document.error(f"duplicate key {key!r}", *path, key, key=True)
                found[key] = _construct(value_node, (*path, key), document, budget)
            return found
        case SequenceNode():
            return [_construct(item, (*path, i), document, budget) for i, item in enumerate(node.value)]
        case ScalarNode():
            return _scalar(node, path, document)
    raise document.error(f"tag {node.tag} is not plain data", *path)


def _scalar(node: ScalarNode, path: Path, document: Document) -> Any:
    text = node.value
    if _SURROGATE.search(text):
        raise document.error("half a surrogate pair is no character", *path)
    match str(node.tag).removeprefix(_TAG):
        case "str" | "timestamp":
            return text
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            digits = text.replace("_", "")
            if len(digits) > 40:
                raise document.error("a number of more than 40 digits", *path)
            return int(digits, 0 if digits.lstrip("+-").lower()[:2] in ("0x", "0o") else 10)
        case "float":
            return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    hint = "a file holds text, numbers, lists and mappings only"
    raise document.error(f"tag {node.tag} is not plain data", *path, hint=hint)


def _explain(model: type[BaseModel], document: Document, base: Path, error: Any) -> SpecError:
    """One pydantic error as a SpecError. Its `loc` may name union members, which are no part of the document."""
    path, data = base, document.data
    for step in base:
        data = data[step]
    where: Path = tuple(error["loc"])
    extra = error["type"] == "extra_forbidden"
    candidates: list[type[BaseModel]] = [model]
    for position, step in enumerate(where):
        last = position == len(where) - 1
        inside = (isinstance(data, dict) and step in data) or (
            isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data)
        )
        if not inside:
            if last and error["type"] == "missing":
                return document.error(f"missing key {step!r}", *path, hint=f"keys here: {', '.join(_keys(candidates))}")
            continue
        if not (last and extra):
            # Lists and mappings of models are looked through by `_models`, so only field names narrow the candidates.
            narrowed = [m for c in candidates for m in _models(_field(c, step))]
            candidates = narrowed or candidates
        path, data = (*path, step), data[step]
    if extra:
        known = _keys(candidates)
        close = nearest(str(where[-1]), known)
        hint = (f"did you mean {close!r}? " if close else "") + f"keys here: {', '.join(known)}"
        return document.error(f"unknown key {where[-1]!r}", *path, key=True, hint=hint)
    message = _plainly(error)
    name = next((str(s) for s in reversed(path) if isinstance(s, str)), None)
    return document.error(f"{name}: {message}" if name else message, *path)


_KINDS = {
    "int": "an integer",
    "float": "a number",
    "finite_number": "a finite number",
    "string": "a text",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "dict": "keys with values",
    "model": "keys with values",
    "model_attributes": "keys with values",
}
"""The first word of a pydantic error's type, and what the file is to hold there."""
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
MAX_GIVEN = 40
"""Characters of what was given that an error repeats."""


def _plainly(error: Any) -> str:
    """A pydantic error in our words: what has to stand there, and what does."""
    kind, context = str(error["type"]), error.get("ctx", {})
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        bound = f"{context[name]:,}".removesuffix(".0")
        return f"must be {words} {bound}, not {_given(error['input'])}"
    if kind == "literal_error":
        return f"must be {context['expected']}, not {_given(error['input'])}"
    if kind == "string_pattern_mismatch":
        return f"{_given(error['input'])} is not of the form {_form(context['pattern'])}"
    if kind in ("too_short", "string_too_short"):
        return f"must have at least {context.get('min_length')}, and is {_given(error['input'])}"
    if kind in ("too_long", "string_too_long"):
        return f"must have at most {context.get('max_length')}"
    wanted = next((said for k, said in _KINDS.items() if kind in (f"{k}_type", f"{k}_parsing", k)), None)
    if kind == "int_from_float":
        wanted = _KINDS["int"]
    if wanted is not None:
        return f"must be {wanted}, not {_given(error['input'])}"
    return str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _form(pattern: str) -> str:
    r"""A regular expression as people may read it: its ends and brackets that only group say nothing.

    >>> _form(r"^[a-z][a-z0-9_]*$")
    '[a-z][a-z0-9_]*'
    """
    return pattern.removeprefix("^").removesuffix("$")


def _given(value: Any) -> str:
    """What stands in the file, in few characters.

    >>> _given({"a": 1}), _given(None), _given("six"), _given(True)
    ('keys with values', 'nothing', "'six'", 'true')
    """
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "keys with values"
        case list() | tuple():
            return "a list"
        case float():
            return f"{value:g}"
    text = repr(value)
    return text if len(text) <= MAX_GIVEN else f"{text[:MAX_GIVEN]}…"


def _keys(models: list[type[BaseModel]]) -> list[str]:
    return sorted({f.alias or n for m in models for n, f in m.model_fields.items()})


def _field(model: type[BaseModel], key: str | int) -> Any:
    return next((f.annotation for n, f in model.model_fields.items() if key in (n, f.alias)), None)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models an annotation can hold, through optionals, unions, lists and mappings."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (Union, types.UnionType, list, tuple, dict):
        for part in get_args(annotation):
            yield from _models(part)
    elif hasattr(annotation, "__metadata__"):
        yield from _models(get_args(annotation)[0])
