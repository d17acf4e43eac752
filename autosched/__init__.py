"""autosched: proved auto-tensorization and auto-scheduling."""

__version__ = "0.1.0"
