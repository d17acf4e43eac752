"""Targets: YAML descriptions of machines as figures, and what this machine is. Read `target`, `spec`, then `native`."""
