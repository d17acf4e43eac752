"""What steps of all kinds of targets share: names of decisions, layouts of operands, register tiles."""
