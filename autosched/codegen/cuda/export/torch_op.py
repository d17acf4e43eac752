"""`torch_op`: an exported kernel as a PyTorch operator: a Python file that loads `NAME.so`.

Nothing is copied: tensors are used where they are, on PyTorch's current stream. It works under `torch.compile`.
"""

from __future__ import annotations

from autosched.codegen.cuda.export.files import CudaFiles
from autosched.codegen.operators import Operator, operator_text
from autosched.codegen.tree.kernel import Kernel

_LAUNCH = '''
_main = getattr(_library, _NAME)


def _bytes(size, device):
    return torch.empty(size, dtype=torch.uint8, device=device)


def _pointers(tensors):
    return [ctypes.c_void_p(t.data_ptr()) for t in tensors]


def _done(status):
    if status:
        raise RuntimeError(f"{_NAME}: CUDA error {status}")


def _launch(inputs, outputs, scalars, device):
    """On the current stream of the tensors' device; constants are laid out anew in every call."""
    arrays = inputs | outputs
    with torch.cuda.device(device):
        stream = ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream)
        packed = [_bytes(size, device) for size in _PACKED]
        if packed:
            prepare = getattr(_library, f"{_NAME}_prepare")
            _done(prepare(*_pointers([inputs[n] for n in _PREPARED] + packed), stream))
        given = _pointers([arrays[n] for n in _ORDER] + packed) + list(scalars.values())
        work = [_bytes(_WORKSPACE, device)] if _WORKSPACE else []
        _done(_main(*given, *_pointers(work), stream))
'''


def torch_op(kernel: Kernel, files: CudaFiles) -> str:
    """The text of `NAME_torch.py`. UsageError as from `operator_text`."""
    program, plan = kernel.program, files.printed.plan
    prepared = dict.fromkeys(a.name for launch in plan.prepare for a in launch.arguments if a.name in program.inputs)
    constants = {
        "_NAME": files.name,
        "_ORDER": [p for p in program.parameters if p in program.tensors],
        "_PREPARED": list(prepared),
        "_PACKED": [w.bytes for w in plan.packed],
        "_WORKSPACE": plan.workspace_bytes,
    }
    build = f"nvcc {files.flags} -shared -Xcompiler -fPIC {files.name}.cu -o {files.name}.so"
    return operator_text(program, Operator(files.name, "cuda", _LAUNCH, constants, build, alignment=16))
