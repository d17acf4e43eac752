"""`PrintFunctions`: what prints kernels in one language, by the place that a `Language` of a backend names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.backends import Language
from autosched.codegen.c_like.source import CSource
from autosched.codegen.tree.kernel import Kernel
from autosched.errors import PluginError
from autosched.machine.target import Target
from autosched.tiling.steps.gpu.operands.shared_proofs import LayoutProof

Arrays = Mapping[str, npt.NDArray[Any]]
RunText = Callable[[Kernel, Target, Arrays, Mapping[str, Any]], dict[str, npt.NDArray[np.generic]]]


@dataclass(frozen=True)
class Files:
    """A kernel as files that a person would ship: `source`, and where callers include one `header`; its function is
    called `name`. `called` says how C calls it with arrays of the host (None: it cannot), `built` how it is built into
    a library that C code loads (None: it cannot); `operator` makes the text of an operator for PyTorch."""

    name: str
    source: str
    header: str = ""
    called: CSource | None = None
    built: CSource | None = None
    operator: Callable[[], str] | None = None


@dataclass(frozen=True)
class PrintFunctions:
    """`text` is a kernel as `show` shows it, for its target; `files` are what `export` writes (None: the text, of
    the kernel under the file's name). Both raise SpecError for an intrinsic without a text in the language.

    `emulator` answers what runs kernels as printed on this machine's CPU (MissingError where something for it is not
    installed); `placed` are proofs about where a printed kernel has its shared memory. None: there is none.
    """

    text: Callable[[Kernel, Target], str]
    files: Callable[[Kernel, Target], Files] | None = None
    emulator: Callable[[], RunText] | None = None
    placed: Callable[[Kernel, Target], list[LayoutProof]] | None = None

    def written(self, kernel: Kernel, target: Target) -> Files:
        """What `export` writes."""
        return self.files(kernel, target) if self.files else Files(kernel.name, self.text(kernel, target))


@cache
def functions_of(language: Language) -> PrintFunctions:
    """What prints the language. PluginError where its place holds something else."""
    found = named_object(language.functions)
    if not isinstance(found, PrintFunctions):
        said = f"{language.functions}, which prints {language.title}, is {type(found).__name__} and not PrintFunctions"
        raise PluginError(said, hint="see CONTRIBUTING.md")
    return found


def named_object(place: str) -> Any:
    """What `package.module:NAME` names. PluginError where there is none."""
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise PluginError(f"{place!r} does not load: {error}", hint="as in package.module:NAME") from error
