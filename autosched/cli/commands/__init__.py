"""One file a command; `autosched.cli.app` loads the one that is asked for. Read `match` first, then `tune`."""
