"""A kernel in the language that a person asks for: which languages there are, and what of a target they print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from platformdirs import user_cache_dir

from autosched.backends import C, Language, languages
from autosched.cli.output import talk
from autosched.codegen.c.export.own_texts import doubtful
from autosched.codegen.print_functions import Files, functions_of, named_object
from autosched.codegen.tree.kernel import Kernel
from autosched.errors import UsageError
from autosched.machine.target import Target
from autosched.tiling.planner.scheme import scheme_of


def languages_of_file(path: Path) -> list[Language]:
    """The languages of a file by its ending. A header is C's."""
    return [one for one in languages().values() if path.suffix in (one.suffix, *([".h"] if one == C else []))]


def one_of(these: Sequence[Language], target: Target) -> Language:
    """The target's own among languages whose files end alike, else the first: it will say why the target has no such
    text."""
    return next((one for one in these if one == target.backend.language), these[0])


def endings() -> str:
    """What the name of an exported file ends in."""
    return ", ".join(dict.fromkeys([*(one.suffix for one in languages().values()), ".json"])) + " or .jsonl"


def text_of(kernel: Kernel, target: Target, language: Language) -> str:
    """The kernel as `show` shows it. UsageError for a language that the target's kernels are not printed in."""
    if language == C:
        not_of_a_gpu(target, lambda own: f"--as {own.name}")
    elif target.backend.language != language:
        raise UsageError(f"{target.name} is no {language.title} target", hint="--as c shows the kernel's C")
    return functions_of(language).text(kernel, target)


def files_of(kernel: Kernel, target: Target, language: Language, measured: bool) -> Files:
    """The kernel as `export` writes it. SpecError for a user's own text that is wrong; a line on stderr for what could
    not be checked. `measured`: it ran, and was right."""
    if language.check:
        for line in named_object(language.check)(kernel, target, measured, _folder()):
            talk().print(f"warning  {line}", markup=False)
    return functions_of(language).written(kernel, target)


def not_of_a_gpu(target: Target, instead: Callable[[Language], str]) -> None:
    """Refuse to print a GPU's kernel as C or LLVM IR; `instead` is what there is in the language that it has."""
    if scheme_of(target) == "gpu":
        own = target.backend.language
        hint = instead(own) if own is not None else "`autosched show STUDY --as loops`"
        raise UsageError(f"{target.name} is a GPU, whose kernels are no code for a CPU", hint=hint)


def tell_wrong_c(kernel: Kernel) -> None:
    """A line on stderr for each C text of the kernel that is wrong or could not be checked."""
    for found in doubtful(kernel.intrinsics, _folder()):
        talk().print(f"warning  {found}", markup=False)


def _folder() -> Path:
    return Path(user_cache_dir("autosched")) / "texts"
