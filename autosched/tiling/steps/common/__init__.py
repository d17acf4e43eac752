"""What steps of all kinds of targets share: layouts of operands and register tiles."""
