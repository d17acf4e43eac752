"""Conditions on data for instructions with a mask: as bits that a mask holds (`masked`), as a choice of what is kept
(`kept`), and a mask of ones where the program has none (`hold`)."""
