"""The loop tree that lowering makes and printers print: its nodes, their invariants, and its text. Read `kernel`."""
