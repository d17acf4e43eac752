"""The command line: a listener on the library's events, and one file a command (in `commands`).

It holds no logic that the Python interface lacks. Answers go to standard output, everything else to standard error.
Read `entry` (errors and exit statuses), then `app` (the commands), then one command, say `commands.tune`.
"""

from autosched.cli.entry import main

__all__ = ["main"]
