"""Each file holds one command; `autosched.cli.app` loads the file that the user calls. Read `match`, then `tune`."""
