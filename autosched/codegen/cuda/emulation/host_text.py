"""Emitted CUDA as host C++: the same lines, but for instructions and dynamic shared memory."""

from __future__ import annotations

import re
from collections.abc import Callable

from autosched.codegen.cuda.emulation.signatures import IssueSignature, Whole, printed
from autosched.codegen.cuda.helpers import helper_texts
from autosched.tensorize.intrinsic import Intrinsic

_ALIGN = r"(?:(?:__align__|alignas)\s*\([^)]*\)\s*)?"
_DYNAMIC = re.compile(
    rf"extern\s+__shared__\s+{_ALIGN}(?P<type>[\w:]+(?: \w+)*?)\s+{_ALIGN}(?P<name>\w+)\s*\[\s*\]\s*;"
)
_INCLUDE = re.compile(r'^[ \t]*#include[ \t]+"(?P<path>[^"]+)".*$', re.M)


def includes(text: str) -> tuple[str, ...]:
    """Headers that the text includes, in order."""
    return tuple(m["path"] for m in _INCLUDE.finditer(text))


def host_text(
    text: str, intrinsics: tuple[Intrinsic, ...], number: Callable[[IssueSignature], int]
) -> tuple[str, str]:  # fmt: skip
    """What has to stand before the text, and the text with the same line numbers: without includes and C linkage, and
    with bodies of our own for instructions, of which `number` says what the emulator calls them."""
    use: set[str] = set()
    for intrinsic in intrinsics:
        alone = intrinsic.scope == "thread" and intrinsic.kind == "compute"
        for function in printed(intrinsic, text):
            match function:
                case Whole():
                    made = function.body()
                case IssueSignature() if alone:
                    made = function.plain(use)
                case IssueSignature():
                    made = function.body(number(function))
            text = text.replace(function.text, made)
    text = _INCLUDE.sub("", text)
    text = text.replace('extern "C" ', "")
    text = _DYNAMIC.sub(r"\g<type>* const \g<name> = static_cast<\g<type>*>(emulate_shared_memory());", text)
    helpers = helper_texts(use)
    for helper in helpers:  # of the text's own, which may stand below the instruction that calls it here
        text = text.replace(helper, "\n" * helper.count("\n"))
    return "\n".join(helpers), text
