"""`torch_op`: an exported C kernel as a PyTorch operator on tensors of the CPU: a Python file that loads `NAME.so`.

Nothing is copied: tensors are used where they are. It works under `torch.compile`.
"""

from __future__ import annotations

from autosched.codegen.c.export.shared_library import build_arguments
from autosched.codegen.c_like.source import WORKSPACE, CSource
from autosched.codegen.operators import Operator, operator_text
from autosched.codegen.tree.kernel import Kernel
from autosched.codegen.tree.workspace import CPU_ALIGNMENT as ALIGNMENT

_LAUNCH = '''
def _memory(size):
    """Memory of a call's own, and where it is aligned."""
    held = torch.empty(size + _LINE, dtype=torch.uint8)
    return held, -(-held.data_ptr() // _LINE) * _LINE


def _launch(inputs, outputs, scalars, device):
    """Constants are laid out anew in every call."""
    held = [_memory(size) for size in _OWN.values()]
    given = {name: ctypes.c_void_p(place) for name, (_, place) in zip(_OWN, held)}
    given |= {name: ctypes.c_void_p(tensor.data_ptr()) for name, tensor in (inputs | outputs).items()}
    given |= scalars
    for function, names in _CALLS:
        called = getattr(_library, function)
        called.restype = None
        called(*(given[name] for name in names))
'''


def torch_op(kernel: Kernel, code: CSource) -> str:
    """The text of `NAME_torch.py`. UsageError as from `operator_text`."""
    program = kernel.program
    own = {b.name: b.elements * b.dtype.bytes for b in kernel.buffers.values() if b.scope == "packed"}
    if code.workspace_bytes:
        own[WORKSPACE] = code.workspace_bytes
    constants = {"_LINE": ALIGNMENT, "_OWN": own, "_CALLS": code.calls}
    build = " ".join(["cc", *build_arguments(code, f"{code.name}.c", f"{code.name}.so")])
    return operator_text(program, Operator(code.name, "cpu", _LAUNCH, constants, build))
