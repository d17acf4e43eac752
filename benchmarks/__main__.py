"""`python -m benchmarks` is `python -m benchmarks.cpu`, the tables; docs/benchmarks.md tells of the others."""

from benchmarks.cpu import main

if __name__ == "__main__":
    raise SystemExit(main())
