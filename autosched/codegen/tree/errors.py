"""`KernelError`: a loop tree that breaks an invariant, a mistake of the lowering."""


class KernelError(AssertionError):
    """A kernel that no printer could print rightly; says where and why."""
