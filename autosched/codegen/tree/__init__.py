"""The loop tree that lowering makes and printers print. Read `kernel`; `text` prints a tree for people."""
