"""`semantics:` as programs: what an instruction computes, in the forms that matching takes."""
