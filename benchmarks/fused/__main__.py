"""`python -m benchmarks.fused`: see `benchmarks.fused.command`."""

from benchmarks.fused.command import main

if __name__ == "__main__":
    raise SystemExit(main())
