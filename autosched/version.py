"""The version, in a module of its own, so that every room can state it without importing the package's interface."""

__version__ = "0.1.0"
