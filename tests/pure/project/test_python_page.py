"""docs/python.md and docs/fusion.md name what there is: modules, classes, arguments, and codes with their meaning."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
from typing import Any

import pytest
from support.paths import ROOT

import autosched
from autosched.costmodel.protocol import CostModel
from autosched.device import registry
from autosched.device.protocol import Device
from autosched.ir.rewrites.refusal import CODES
from autosched.report.comparison import StrategyComparison
from autosched.search import SearchSpace, Strategy
from autosched.search.protocol import Factory
from autosched.search.registry import _BUILT_IN as STRATEGIES
from autosched.search.tuning.study import Study
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.space import Space

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(?:python|pycon|py)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PROSE = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
ROOTS: dict[str, Any] = {
    "autosched": autosched, "space": SearchSpace, "study": Study, "table": StrategyComparison, "plan": Plan,
    "registry": registry, "store": importlib.import_module("autosched.store"),
}  # fmt: skip
"""What a name in the page's sentences begins with."""
DOTTED = re.compile(r"(?:[a-z_]+\.)+[A-Za-z_]+")


def imports() -> list[tuple[str, str | None]]:
    """Modules that the page's code imports, each with a name from it."""
    found = []
    for block in BLOCKS:
        lines = [re.sub(r"^(>>>|\.\.\.) ?", "", line) for line in block.splitlines()]
        for node in (n for line in lines if re.match(r"(import|from) ", line) for n in ast.parse(line).body):
            if isinstance(node, ast.ImportFrom):
                found += [(str(node.module), a.name) for a in node.names]
            elif isinstance(node, ast.Import):
                found += [(a.name, None) for a in node.names]
    return sorted({i for i in found if i[0].split(".")[0] not in ("my_package", "conformance")}, key=str)


def named() -> list[str]:
    """Dotted names in the page's sentences, with their arguments."""
    spans = re.findall(r"`([^`\n]+)`", PROSE)
    return sorted({s for s in spans if DOTTED.match(s) and s.split(".")[0] in ROOTS})


def resolved(name: str) -> Any:
    """The value that a dotted name leads to; of an instance's attribute what is known of it."""
    first, *rest = name.split(".")
    found = ROOTS[first]
    for part in rest:
        if inspect.ismodule(found) and not hasattr(found, part):
            found = importlib.import_module(f"{found.__name__}.{part}")
        elif inspect.isclass(found) and found in (Study, Plan) and part == "space":
            found = {Study: SearchSpace, Plan: Space}[found]
        elif inspect.isclass(found) and not hasattr(found, part):
            assert f"self.{part}" in inspect.getsource(found) or part in found.__annotations__, name
            found = None
        else:
            found = getattr(found, part)
    return found


def test_the_page_names_something() -> None:
    assert len(imports()) >= 10
    assert {"space.best(k)", "table.frame", "autosched.errors.AutoschedError"} <= set(named())


@pytest.mark.parametrize(("module", "name"), imports())
def test_what_the_page_imports_is_there(module: str, name: str | None) -> None:
    found = importlib.import_module(module)
    assert name is None or hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("span", named())
def test_names_in_sentences_are_there_with_their_arguments(span: str) -> None:
    name = DOTTED.match(span)
    assert name is not None
    found = resolved(name[0])
    if "(" not in span:
        return
    (call,) = ast.parse(span).body
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    known = inspect.signature(found).parameters
    assert {k.arg for k in call.value.keywords} <= set(known)
    places = [p for p in known if p != "self"]
    assert len(call.value.args) <= len(places)
    plain = [a.id for a in call.value.args if isinstance(a, ast.Name) and found not in (autosched.compare,)]
    assert plain == places[: len(plain)], "arguments are called as they are"


def parameters(made: Any) -> list[str]:
    return [p for p in inspect.signature(made).parameters if p != "self"]


@pytest.mark.parametrize(
    ("cls", "protocol"), [("Shuffled", Strategy), ("Scaled", CostModel), ("Estimate", Device)], ids=lambda c: str(c)
)
def test_classes_of_the_page_have_the_signatures_of_their_protocols(cls: str, protocol: Any) -> None:
    bodies = [n for block in BLOCKS if not block.startswith(">>>") for n in _parsed(block)]
    (found,) = (n for n in bodies if isinstance(n, ast.ClassDef) and n.name == cls)
    methods = {m.name: [a.arg for a in m.args.args[1:]] for m in found.body if isinstance(m, ast.FunctionDef)}
    asked = {n: m for n, m in vars(protocol).items() if inspect.isfunction(m) and not n.startswith("_")}
    assert asked
    for name, method in asked.items():
        assert methods[name] == parameters(method)
    if protocol is Strategy:
        assert methods["__init__"] == parameters(Factory.__call__)


def _parsed(block: str) -> list[ast.stmt]:
    try:
        return ast.parse(block).body
    except SyntaxError:  # a program of the language
        return []


@pytest.mark.parametrize("name", STRATEGIES)
def test_each_strategy_is_made_as_the_page_says(name: str) -> None:
    assert parameters(STRATEGIES[name])[:3] == ["space", "seed", "model"]


def test_devices_of_the_page_are_known() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    (row,) = (line for line in glossary.splitlines() if line.startswith("| device |"))
    said = {name.split(":")[0] for name in re.findall(r"`([^`]+)`", row)}
    assert said == set(registry.BUILTIN)


def test_codes_of_refusals_mean_what_the_page_says() -> None:
    page = (ROOT / "docs" / "fusion.md").read_text(encoding="utf-8")
    table = page[page.index("| code | meaning |") :].split("\n\n")[0]
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (.*?)(?:: `[^`]+`)? \|$", table, re.MULTILINE))
    assert rows == CODES
