"""Studies and their trials: frozen records, a SQLite file that keeps them, JSON lines to take them elsewhere.

Nothing here chooses or times anything. Read `records`, then `protocol`, then `sqlite`.
"""

from autosched.store.exchange import read_schedule, read_trials, schedule_json, write_trials
from autosched.store.protocol import Store, differing_fields
from autosched.store.records import STATUSES, Measurement, StudyRecord, Trial
from autosched.store.sqlite import NearStudy, SqliteStore, StudySummary

__all__ = [
    "STATUSES",
    "Measurement",
    "NearStudy",
    "SqliteStore",
    "Store",
    "StudyRecord",
    "StudySummary",
    "Trial",
    "differing_fields",
    "read_schedule",
    "read_trials",
    "schedule_json",
    "write_trials",
]
