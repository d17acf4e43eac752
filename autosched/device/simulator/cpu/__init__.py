"""The simulator's model of a CPU."""
