"""Adapters: proved rewrites of a program after which an instruction fits one of its stages.

A stage that sums products is put in ring form (`polynomial`); the one product of two elements in it is what an
instruction can do, perhaps on shifted elements, and the rest are compensation terms (`restate`). The identity between
the two is proved for every input (`proof`), and the program is rebuilt around it (`rebuild`). Nothing here knows an
operator or an instruction by name; integers only, since the ring laws hold modulo 2^w and not for floats.
"""

from autosched.tensorize.adapters.adapt import Adapted, Adapters, adaptations

__all__ = ["Adapted", "Adapters", "adaptations"]
