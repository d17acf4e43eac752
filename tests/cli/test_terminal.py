"""What a person sees at a terminal, and what a file gets."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading

import pytest
from cli.conftest import SMALL, Cli

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9]")


def _at_terminal(cli: Cli, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run with a terminal for standard error; the exit status and all that it got."""
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def read() -> None:
        try:
            while chunk := os.read(ours, 4096):
                seen.append(chunk)
        except OSError:
            pass  # the other side has closed

    options = cli.options()
    options["env"] |= {"TERM": "xterm-256color", "COLUMNS": "110", "LINES": "40", **environment}
    run = subprocess.Popen(cli.command(*arguments), stdout=subprocess.DEVNULL, stderr=theirs, **options)
    os.close(theirs)
    reader = threading.Thread(target=read)
    reader.start()
    status = run.wait(timeout=120)
    reader.join(timeout=10)
    os.close(ours)
    return status, b"".join(seen).decode()


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_bar_with_best_speed_and_time_left(cli: Cli) -> None:
    status, seen = _at_terminal(cli, "tune", *SMALL, "-n", "12", "-s", "random")
    assert status == 0
    assert "\x1b[" in seen
    assert re.search(r"\d+/12", seen)
    assert re.search(r"best \d[\d.]* (µs|ns|ms)  [\d.]+ [GMT]OP/s", seen)
    assert re.search(r"~\d+ s left", seen)
    assert COLOUR.search(seen)


@pytest.mark.slow
def test_no_colour_where_it_is_not_wanted(cli: Cli) -> None:
    status, seen = _at_terminal(cli, "tune", *SMALL, "-n", "3", "-s", "random", NO_COLOR="1")
    assert status == 0
    assert not COLOUR.search(seen)
    _, dumb = _at_terminal(cli, "tune", *SMALL, "-n", "3", "-s", "random", TERM="dumb")
    assert "\x1b" not in dumb


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
def test_output_that_cannot_be_written_is_no_traceback(cli: Cli, redirection: str) -> None:
    if redirection == ">/dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    command = ["sh", "-c", f'"$@" {redirection}', "sh", *cli.command("studies", "--json")]
    run = subprocess.run(command, stderr=subprocess.PIPE, check=False, **cli.options())
    said = run.stderr if isinstance(run.stderr, str) else run.stderr.decode()
    assert "Traceback" not in said
    assert run.returncode == (0 if redirection == ">&-" else 2)
    assert redirection == ">&-" or said.startswith("error: cannot write the output: No space left")
