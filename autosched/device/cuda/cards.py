"""Which target describes a GPU, and whether a target's code runs on it."""

from __future__ import annotations

from autosched.device.cuda.compile.toolkit import arch_number
from autosched.device.cuda.driver import CardFacts
from autosched.errors import MissingError, UsageError
from autosched.machine.target import Target

TARGETS = {"H200": "nvidia-h200", "H100": "nvidia-h100", "A100": "nvidia-a100", "RTX 4090": "nvidia-rtx4090"}
"""Part of a GPU's name to the built-in target."""


def matching_target(facts: CardFacts) -> str:
    """The built-in target of a GPU: by its name. MissingError where none describes it."""
    for part, name in TARGETS.items():
        if part in facts.name:
            return name
    raise MissingError(f"no built-in target describes the {facts.name}", hint="autosched targets detect -d cuda --yaml")


def check_target(target: Target, facts: CardFacts) -> None:
    """MissingError where the GPU cannot run the target's code; UsageError where the target is no NVIDIA GPU."""
    if target.backend.device != "cuda" or "arch" not in target.compiler:
        raise UsageError(f"{target.name} is {target.isa}, and the device cuda runs cuda", hint="as in -t nvidia-h200")
    arch = target.compiler["arch"]
    own, wanted = arch_number(facts.arch), arch_number(arch)
    fits = own == wanted if arch.endswith(("a", "f")) else own // 10 == wanted // 10 and own >= wanted
    if not fits:
        hint = "choose a target of the GPU's generation, or -d simulator"
        raise MissingError(f"{target.name} is built for {arch}, and the {facts.name} is {facts.arch}", hint=hint)
    for limit in ("shared_bytes", "threads_per_block", "registers_per_core"):
        if target.limits.get(limit, 0) > facts.limits.get(limit, 1 << 62):
            has, says = facts.limits[limit], target.limits[limit]
            raise UsageError(f"{target.name} says {limit} = {says:,}, and the {facts.name} has {has:,}")
