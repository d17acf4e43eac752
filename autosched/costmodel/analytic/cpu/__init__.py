"""Terms of the clock on a CPU: caches, pages, streams, copies, and stages without an instruction."""
