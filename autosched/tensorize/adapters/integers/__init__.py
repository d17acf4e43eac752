"""Sums of integers in ring form (`ring`): a term is restated for an instruction (`restate`), and the program rebuilt
around it (`rebuild`)."""
