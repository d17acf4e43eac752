"""Reads and writes of memory as LLVM IR. Read `indexing` (subscripts), `addresses`, then `loads` and `memory`."""
