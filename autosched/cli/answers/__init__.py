"""What commands answer: lines for people, objects for `--json`."""
