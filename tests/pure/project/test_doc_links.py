"""Links of the pages in docs and beside the code lead to files and headings that exist; every page is linked."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from support.paths import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def links(page: Path) -> list[str]:
    """Targets of the page's links that lie in this repository."""
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(page)))
    return [link for link in found if not re.match(r"\w+:", link)]


@cache
def anchors(page: Path) -> frozenset[str]:
    """Anchors of the page's headings, spelt as GitHub spells them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *$", prose(page), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        twice = next(n for n in range(len(found) + 1) if (f"{plain}-{n}" if n else plain) not in found)
        found.add(f"{plain}-{twice}" if twice else plain)
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}: no such heading"


def test_every_page_is_linked() -> None:
    linked = {(page.parent / link.partition("#")[0]).resolve() for page in PAGES for link in links(page)}
    assert [p.name for p in PAGES if p.parent != ROOT and p not in linked] == []
