"""Side by side with peers, on this machine. `python -m benchmarks` prints a table and writes a JSON file."""
