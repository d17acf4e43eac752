"""`autosched doctor`: what this machine can do, and what to do about what it cannot."""

from __future__ import annotations

import typer

from autosched.cli import options
from autosched.cli.output import answer, answer_json
from autosched.device.doctor import Finding, diagnose
from autosched.errors import AutoschedError


def doctor(store: options.StoreOpt = None, json: options.JsonOpt = False) -> None:
    """Look at what tuning needs on this machine. Exit status 3 when something needed is missing."""
    findings = [*diagnose(), _store(store)]
    if json:
        answer_json([{"name": f.name, "ok": f.ok, "detail": f.detail, "fix": f.fix, "needed": f.needed} for f in findings])
    else:
        width = max(len(f.name) for f in findings)
        for f in findings:
            mark = "ok     " if f.ok else "MISSING" if f.needed else "absent "
            answer(f"{mark} {f.name:<{width}}  {f.detail}" + (f"\n{'':<{width + 10}}{f.fix}" if f.fix and not f.ok else ""))
    if any(f.needed and not f.ok for f in findings):
        raise typer.Exit(3)


def _store(where: str | None) -> Finding:
    try:
        path = options.store_path(where)
        with options.open_store(where) as opened:
            count = len(opened.studies())
    except AutoschedError as error:
        return Finding("store", False, error.message, error.hint or "give --store PATH", needed=True)
    return Finding("store", True, f"{path} ({count} studies)", needed=True)
