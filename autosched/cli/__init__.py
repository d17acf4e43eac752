"""The command line: a listener on the library's events, and one file a command.

It holds no logic that the Python interface lacks. Answers go to standard output, everything else to standard error.
"""

from autosched.cli.app import main

__all__ = ["main"]
