"""`Language`: a language that kernels are printed in, by name; `C`, which is every CPU's.

What prints is named by its place, for this room knows nothing of kernels: `codegen.print_functions` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """`name` is what `emit:` of an instruction and `show --as` call the language, `title` what a sentence does, and
    `machine` what runs it. `export` writes files that end in `suffix` (`.cl`).

    `functions` ("package.module:NAME") are the `PrintFunctions` that print a kernel. `check` ("": none) is a function
    that looks at a user's own texts in a kernel before it is written: (kernel, target, measured, folder) to the lines
    of what was not checked, where `measured` says that the kernel ran and was right, and `folder` keeps results.
    SpecError for a text that is wrong.

    `texts` are further texts of an instruction beside the one called `name`. `descriptors`: instructions may take
    operands from shared memory by descriptor, so that their texts have the fields `{keep}` and `{a.across}`.

    `if_simulated`: a kernel that only the simulator ran has a text all the same, which `tune` proposes to write.
    """

    name: str
    title: str
    machine: str
    suffix: str
    functions: str
    check: str = ""
    texts: tuple[str, ...] = ()
    descriptors: bool = False
    if_simulated: bool = True


C = Language(
    "c",
    "C",
    "CPU",
    ".c",
    functions="autosched.codegen.c.export.functions:FUNCTIONS",
    check="autosched.codegen.c.export.own_texts:check_texts",
    if_simulated=False,  # an instruction may have no C text
)
