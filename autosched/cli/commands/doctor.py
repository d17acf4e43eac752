"""`autosched doctor`: what this machine can do, and what to do about what it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from autosched.cli import inputs, options
from autosched.cli.output import answer, answer_json
from autosched.device.doctor import Finding, diagnose
from autosched.errors import AutoschedError
from autosched.store.explain import path_of


def doctor(store: options.StoreOpt = None, json: options.JsonOpt = False) -> None:
    """Check what tuning needs on this machine. Exit status 3 when something needed is missing."""
    findings = [*diagnose(), _store(store)]
    if json:
        answer_json(
            [{"name": f.name, "ok": f.ok, "detail": f.detail, "fix": f.fix, "needed": f.needed} for f in findings]
        )
    else:
        width = max(len(f.name) for f in findings)
        for f in findings:
            mark = "ok     " if f.ok else "MISSING" if f.needed else "absent "
            answer(f"{mark} {f.name:<{width}}  {f.detail}")
            if f.fix and not f.ok:
                answer(f"{'':<{width + 10}}{f.fix}")
    if any(f.needed and not f.ok for f in findings):
        raise typer.Exit(3)


def _store(where: str | None) -> Finding:
    fix = "give --store PATH"
    try:
        path = Path(path_of(inputs.store_path(where)))
        if not path.exists():
            folder = next(p for p in path.absolute().parents if p.exists())
            writable = os.access(folder, os.W_OK | os.X_OK) and folder.is_dir()
            detail = f"{path} (none yet)" if writable else f"{path}: {folder} cannot be written"
            return Finding("store", writable, detail, fix, needed=True)
        with inputs.open_store(where) as opened:
            count = len(opened.studies())
    except AutoschedError as error:
        return Finding("store", False, error.message, error.hint or fix, needed=True)
    return Finding("store", True, f"{path} ({count} {'study' if count == 1 else 'studies'})", needed=True)
