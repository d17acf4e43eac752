"""How operands of a nest travel on a GPU: places, layouts, copies, boxes. Read `operand_sources`, `slice_copies`."""
