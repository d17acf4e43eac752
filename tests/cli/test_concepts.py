"""docs/concepts.md shows what the commands print."""

from __future__ import annotations

import re

import pytest
from cli.conftest import Cli
from support.paths import ROOT

PAGE = (ROOT / "docs/concepts.md").read_text()
COMMAND = re.search(r"`autosched (match matmul [^`]*)`", PAGE)
BLOCKS = re.findall(r"^```\n(matmul, stage C, on .*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def untimed(text: str) -> str:
    return re.sub(r", [\d.]+ ms\)", ")", text)


def test_answers_of_match(cli: Cli) -> None:
    assert COMMAND
    fits, refused = BLOCKS
    arguments = COMMAND[1].split()
    assert untimed(cli.near()(*arguments).out).startswith(untimed(fits))
    floats = [a for n, a in enumerate(arguments) if not {"a=u8", "b=s8"} & set(arguments[n : n + 2])]
    assert cli.near()(*floats, status=1).out == refused


def test_the_candidate_is_followed_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    (listing,) = re.findall(r"^```python\n(from autosched import api\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(listing, "docs/concepts.md", "exec"), {})
    printed = capsys.readouterr().out
    (shown,) = re.findall(r"^```\n(prepare .*?)  … the last four rows", PAGE, re.MULTILINE | re.DOTALL)
    assert shown in printed
    (source,) = re.findall(r"^```c\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert all(line in printed for line in source.splitlines())


def test_the_first_trial_is_the_one_that_the_page_follows(cli: Cli) -> None:
    (command,) = re.findall(r"^autosched (tune .*) -n 12$", PAGE, re.MULTILINE)
    cli.near()(*command.split(), "-n", "1", "-q")
    shown = cli.near()("show", "--trial", "1", "--as", "loops").out
    (tree,) = re.findall(r"^```\n(prepare .*?)  … the last four rows", PAGE, re.MULTILINE | re.DOTALL)
    assert tree in shown
    (row,) = re.findall(r"^```\n(reg_i=.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    printed = dict(re.findall(r"^  (\w+) = (.*)$", shown, re.MULTILINE))
    assert printed == dict(re.findall(r"(\w+)=(.+?)(?:  |\n)", row))
