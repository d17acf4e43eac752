"""Lowering of stages that teams of a GPU's threads compute without an instruction. Read `team`, then `along_rows`."""
