"""What printers and the interpreter ask of a loop tree: how accesses depend on the lane, where barriers stand."""
