"""Emitted CUDA as host C++: the same lines, but for instructions and dynamic shared memory."""

from __future__ import annotations

import re

from autosched.codegen.cuda.emission import device_function, lanes_of
from autosched.tensorize.intrinsic import Intrinsic

_DYNAMIC = re.compile(
    r"extern\s+__shared__\s+(?:(?:__align__|alignas)\s*\([^)]*\)\s*)?(?P<type>[\w:]+(?: \w+)*?)\s+"
    r"(?:(?:__align__|alignas)\s*\([^)]*\)\s*)?(?P<name>\w+)\s*\[\s*\]\s*;"
)
_INCLUDE = re.compile(r'^[ \t]*#include[ \t]+"(?P<path>[^"]+)".*$', re.M)
_SIGNATURE = re.compile(r"^(?:template\s*<[^>]*>\s*)?__device__[^{]*\{", re.M | re.S)


def includes(text: str) -> tuple[str, ...]:
    """Headers that the text includes, in order."""
    return tuple(m["path"] for m in _INCLUDE.finditer(text))


def host_text(text: str, intrinsics: tuple[tuple[int, Intrinsic], ...]) -> str:
    """The text with the same line numbers: without includes and C linkage, and with bodies of our own for each
    intrinsic, whose number among the emulator's stands with it."""
    for number, intrinsic in intrinsics:
        printed = device_function(intrinsic)
        if printed in text:
            text = text.replace(printed, _padded(_body(number, intrinsic, printed), printed))
    text = _INCLUDE.sub("", text)
    text = text.replace('extern "C" ', "")
    return _DYNAMIC.sub(r"\g<type>* const \g<name> = static_cast<\g<type>*>(emulate_shared_memory());", text)


def _padded(body: str, printed: str) -> str:
    return body + "\n" * (printed.count("\n") - body.count("\n"))


def _body(number: int, intrinsic: Intrinsic, printed: str) -> str:
    """The function with its own signature, which hands its registers to the emulator."""
    found = _SIGNATURE.search(printed)
    assert found is not None
    if intrinsic.scope == "thread" and intrinsic.kind == "compute":
        from autosched.codegen.cuda.plain import plain_function

        return " ".join(plain_function(intrinsic).splitlines())
    signature = " ".join(found.group(0).split())
    order = ", ".join(f"(void*)({'' if _pointer(signature, o) else '&'}{o})" for o in intrinsic.operands)
    issue = "emulate_issue_group" if lanes_of(intrinsic) == 128 else "emulate_issue"
    return f"{signature} void* const operands[] = {{{order}}}; {issue}({number}, operands); }}"


def _pointer(signature: str, operand: str) -> bool:
    return re.search(rf"void\s*\*\s*{operand}\b", signature) is not None
