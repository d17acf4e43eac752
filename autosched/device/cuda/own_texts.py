"""CUDA texts of a user's own instructions: a kernel that does not compile is not written, an unchecked one is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from autosched.codegen.cuda import print_cuda
from autosched.codegen.tree.kernel import Kernel
from autosched.device.cuda.compile.builder import CudaBuilder, TranslationUnit
from autosched.device.cuda.compile.nvrtc import CudaCompileError
from autosched.errors import MissingError, SpecError
from autosched.machine.target import Target
from autosched.tensorize.spec.catalogue import is_own


def check_texts(
    kernel: Kernel,
    target: Target,
    measured: bool,
    folder: Path | None = None,
    builder: Callable[[], CudaBuilder] = partial(CudaBuilder, processes=1),
) -> Iterator[str]:
    """SpecError where the kernel holds such a text and NVRTC refuses it. `measured`: a GPU ran the kernel, and what it
    computed was compared; else a line says that it was not. `builder` makes what compiles it; nothing is kept in
    `folder`."""
    own = [i for i in kernel.intrinsics if is_own(i)]
    if not own or measured:
        return
    names, files = ", ".join(i.name for i in own), ", ".join(dict.fromkeys(i.path for i in own))
    printed = print_cuda(kernel, target)
    said = "it compiles, and no GPU has run it"
    try:
        with closing(builder()) as compiler:
            compiler.build(TranslationUnit(printed.text, printed.plan.arch, printed.headers))
    except CudaCompileError as error:
        what = f"{files}: the kernel with {names} does not compile: {error.message}"
        raise SpecError(what, hint="mend emit.cuda, or the header that it needs") from None
    except MissingError as error:
        said = f"it was not compiled: {error.message}"
    yield f"{files}: the CUDA text of {names} was not checked: {said}"
