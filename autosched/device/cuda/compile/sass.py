"""The machine instructions of a cubin, to see that an intrinsic became what it is for (`HGMMA`, not a loop of FMAs)."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from autosched.device.cuda.compile.toolkit import arch_number, wheel_folder
from autosched.errors import MissingError
from autosched.scratch import Scratch, scratch_errors

FIX = "pip install nvidia-cuda-nvdisasm (13.2 or newer)"
OLDEST = 75
"""Compute capability below which NVIDIA's wheel disassembles nothing: there the operation's number is looked up."""
VOLTA = 70
_VOLTA_NUMBERS = {0x226: "IDP", 0x236: "HMMA"}
"""Low 12 bits of a 128-bit instruction."""
_PASCAL_NUMBERS = {0x53F8 >> 3: "IDP"}
"""High 13 bits of a 64-bit instruction (the next three say which operands are signed). Both tables: seen in cubins of
one `dp4a` and one `wmma.mma` by NVRTC 12.9; `IDP` has the same number for sm_75, where `nvdisasm` names it."""
_HEADER, _ENTRY = struct.Struct("<HHH"), struct.Struct("<IIQQQQIIQQ")
"""Of ELF: size and number of section headers and which one holds their names; a section header."""
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", re.MULTILINE)


def instructions_of(code: bytes, arch: str) -> Counter[str]:
    """How often each operation stands in the code, by its name without suffixes (`HGMMA`); below compute capability
    7.5 the products of integers and matrices only (`IDP`, `HMMA`). MissingError where no `nvdisasm` is here."""
    number = arch_number(arch)
    if number < OLDEST:
        return Counter(_by_number(code, number))
    return Counter(m[2] for m in _INSTRUCTION.finditer(disassemble(code)))


def instructions_of_each(codes: Sequence[bytes], arch: str) -> list[Counter[str]]:
    """`instructions_of` of each of several cubins of one architecture, in one go: `nvdisasm` takes longer to start than
    to look at a kernel."""
    if arch_number(arch) < OLDEST or len(codes) < 2:
        return [instructions_of(code, arch) for code in codes]
    parts = [b"".join(_functions(code)) for code in codes]
    ends = list(accumulate(map(len, parts)))
    found: list[Counter[str]] = [Counter() for _ in codes]
    for m in _INSTRUCTION.finditer(_disassembled(b"".join(parts), "-b", f"SM{arch.removeprefix('sm_')}")):
        found[bisect_right(ends, int(m[1], 16))][m[2]] += 1
    return found


def _by_number(code: bytes, arch: int) -> Iterator[str]:
    for text in _functions(code):
        if arch >= VOLTA:
            numbers = [word & 0xFFF for (word,) in struct.iter_unpack("<H14x", text)]
            yield from (_VOLTA_NUMBERS[n] for n in numbers if n in _VOLTA_NUMBERS)
        else:  # every fourth word schedules the three after it
            words = [word >> 51 for i, (word,) in enumerate(struct.iter_unpack("<Q", text)) if i % 4]
            yield from (_PASCAL_NUMBERS[n] for n in words if n in _PASCAL_NUMBERS)


def _functions(code: bytes) -> Iterator[bytes]:
    """The machine code of each function of a cubin, which is an ELF file."""
    (start,) = struct.unpack_from("<Q", code, 0x28)
    size, count, named = _HEADER.unpack_from(code, 0x3A)
    sections = [_ENTRY.unpack_from(code, start + i * size) for i in range(count)]
    names = sections[named][4]
    for section in sections:
        at = names + section[0]
        if code[at : code.index(b"\0", at)].startswith(b".text."):
            yield code[section[4] : section[4] + section[5]]


def disassemble(code: bytes) -> str:
    """The text of all functions of a cubin. MissingError as above."""
    return _disassembled(code, "-c")


def _disassembled(code: bytes, *options: str) -> str:
    with Scratch() as folder:
        path = folder.path / "kernel.cubin"
        with scratch_errors():
            path.write_bytes(code)
        command = [disassembler(), *options, "-ndf", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise MissingError(f"nvdisasm: {done.stderr.strip()}", hint=FIX)
    return done.stdout


def disassembler() -> str:
    """The path of `nvdisasm`: NVIDIA's wheel, else the one on PATH. MissingError where neither is here."""
    folder = wheel_folder("cu13/bin")
    own = folder / "nvdisasm" if folder else None
    found = str(own) if own is not None and own.exists() else shutil.which("nvdisasm")
    if found is None:
        raise MissingError("nvdisasm, which shows machine instructions, is not installed", hint=FIX)
    return found
