"""The simulator's model of a CPU: `cpu_model` gives seconds from a kernel's loops, units of a core and caches."""
