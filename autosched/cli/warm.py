"""`--warm-from`: recordings, stores and studies that a cost model learns from before the first trial."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autosched.cli import inputs
from autosched.cli.stored import opened, request_of
from autosched.costmodel.learned.pretrained import Earlier
from autosched.errors import AutoschedError, StoreError
from autosched.machine.target import Target
from autosched.search.tuning.warm import earlier_recording, earlier_study
from autosched.store.replay_file import read_replay


def warm_from(texts: Sequence[str] | None, store: str | None, target: Target) -> tuple[Earlier, ...]:
    """What the flags name. Of a whole store the studies of this target count, as far as they can be learnt from.

    Raises UsageError and StoreError for what is not there, FeatureMismatchError for a study of another version."""
    return tuple(one for text in texts or () for one in _named(text, store, target))


def _named(text: str, store: str | None, target: Target) -> list[Earlier]:
    path = Path(text.removeprefix("sqlite:///")).expanduser()
    if path.is_file() and path.name.endswith((".json", ".json.gz")):
        return [earlier_recording(read_replay(str(path)))]
    if path.is_file() or text.startswith("sqlite:///"):
        return _all_of(text, target)
    record, trials = opened(text, store)
    return [earlier_study(record, trials, request_of(record))]


def _all_of(store: str, target: Target) -> list[Earlier]:
    found, first = [], None
    with inputs.open_store(store, read_only=True) as stored:
        for record in stored.studies():
            if record.target == target.name:
                try:
                    found.append(earlier_study(record, stored.trials(record.name), request_of(record)))
                except AutoschedError as error:
                    first = first or error
    if not found:
        why = f": {first.message}" if first else ""
        hint = None if first else "a study of another target counts where it is named"
        raise StoreError(f"{store} has no study of {target.name} to learn from{why}", hint=hint)
    return found
