"""`Backend`: what the code knows of a kind of machine, by the name that targets and instructions give as their `isa`.

What differs from machine to machine of a kind (threads of a warp, features, sizes) is the target's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from autosched.backends.c_flags import CFlags
from autosched.backends.emulation import Emulation
from autosched.backends.language import Language


@dataclass(frozen=True, slots=True)
class Backend:
    """Every field but `isa` may be left out: then only the simulator runs the machine's kernels.

    `language` is the language that its kernels are shown and written in (None: C, unless the target is a GPU), `device`
    the name of what builds and runs them. `emits` is the language that an instruction's bare `emit:` text is for;
    `compiles` the one without whose text the device takes no instruction ("": it says so of a kernel).

    Features: `features` exist, and so does what matches the pattern `numbered`; any of `async_copies` means that
    threads start copies to shared memory which others need not wait for, any of `bulk_copies` that an engine (NVIDIA's
    TMA) copies and stores whole boxes. `fuses`: every machine of the kind multiplies and adds in one instruction.

    Threads of a `warp` and of a `warpgroup`, where neither instruction nor target says otherwise.

    Of CPUs: `machines` are Python's names (`platform.machine()`, in small letters); `vectors` the bytes and number of
    vector registers with a feature, widest first; `permutes` the lanes of 32 bits that one instruction orders by
    another register with a feature, most first; `to_bf16` the floats that one instruction (of LLVM's for x86) rounds
    to bf16 with a feature, subnormal ones as zero, most first; `core` an LLVM triple and a core with nearly every
    extension, for which texts are compiled where they cannot be run, and `emulation` what runs them on machines of
    another kind; `c` the C compilers' flags; `memory_operands`: instructions take an operand from memory;
    `stack_bytes` what stacks are aligned to, where vectors are wider and functions can align theirs (0: no);
    `store_fence` the LLVM function that orders stores past the caches (None: a full fence); `pause` declares and calls
    the one for loops that wait (None: the system's); `measured_rates`: probes measure issue rates; `notable` are
    features that `doctor` tells.
    """

    isa: str
    kind: Literal["cpu", "gpu", "accelerator"] = "accelerator"
    language: Language | None = None
    device: str | None = None
    emits: str = "c"
    compiles: str = ""
    features: frozenset[str] = frozenset()
    numbered: str = ""
    async_copies: frozenset[str] = frozenset({"async_copy"})
    bulk_copies: frozenset[str] = frozenset({"bulk_copy"})
    fuses: bool = False
    warp: int = 32
    warpgroup: int = 128
    machines: tuple[str, ...] = ()
    vectors: tuple[tuple[str, int, int], ...] = (("", 16, 16),)
    permutes: tuple[tuple[str, int], ...] = ()
    to_bf16: tuple[tuple[str, int], ...] = ()
    core: tuple[str, str] | None = None
    emulation: Emulation | None = None
    c: CFlags = field(default_factory=CFlags)
    memory_operands: bool = False
    stack_bytes: int = 0
    store_fence: str | None = None
    pause: tuple[str, str] | None = None
    measured_rates: bool = False
    notable: tuple[str, ...] = ()

    @property
    def is_cpu(self) -> bool:
        return self.kind == "cpu"

    @property
    def is_gpu(self) -> bool:
        return self.kind == "gpu"

    def export_suffix(self, device: str) -> str | None:
        """The ending of the file that a kernel found on `device` is best written to; None where it has no text."""
        language = self.language
        return language.suffix if language and (language.if_simulated or device == self.device) else None

    def threads_of(self, scope: str) -> int:
        """Threads that issue an instruction of this scope together."""
        return {"warp": self.warp, "warpgroup": self.warpgroup}.get(scope, 1)

    def c_flags(self, features: frozenset[str] | set[str]) -> str:
        """GCC's and Clang's flags for a set of features, as far as they are known.

        >>> from autosched.backends import ARM, X86
        >>> ARM.c_flags({"asimddp", "i8mm"}), X86.c_flags({"avx512_vnni", "fma"}), ARM.c_flags({"asimd"})
        ('-march=armv8.2-a+dotprod+i8mm', '-mavx512vnni -mfma', '')
        """
        return self.c.spell(sorted(features)) if self.c.spell else ""
