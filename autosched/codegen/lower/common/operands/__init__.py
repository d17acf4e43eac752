"""Where a nest reads its operands from: `sources`; what is copied for it, and how operands are computed on the way."""
