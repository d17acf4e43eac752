"""Cubins kept on disk, by all that they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from autosched.device.cuda.compile.nvrtc import OPTIONS, Cubin
from autosched.device.cuda.compile.resources import Resources
from autosched.text_file import write_whole


def cubin_key(
    text: str, headers: Mapping[str, str], arch: str, toolkit: str, options: tuple[str, ...] = OPTIONS
) -> str:
    """32 hexadecimal digits: equal for equal texts, headers, architecture, compiler and options."""
    everything = json.dumps([text, sorted(headers.items()), arch, toolkit, list(options)])
    return hashlib.sha256(everything.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class CubinCache:
    """A folder with two files a cubin: `KEY.cubin`, and `KEY.json` with what it takes. Files that cannot be read count
    as missing, and a folder that cannot be written keeps nothing: a cache is never an error. Where the cubins take more
    than `most_bytes`, those that were not asked for for longest go, until they take three quarters of it."""

    folder: Path
    most_bytes: int = 1 << 30

    def get(self, key: str) -> Cubin | None:
        """The cubin of a key, or None."""
        try:
            said = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            code = (self.folder / f"{key}.cubin").read_bytes()
            kernels = {name: Resources(**r) for name, r in said["kernels"].items()}
            with contextlib.suppress(OSError):
                os.utime(self.folder / f"{key}.cubin")
            return Cubin(code, said["arch"], said["toolkit"], kernels, tuple(said["warnings"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, cubin: Cubin) -> None:
        """Keep a cubin; readers see all of it or nothing."""
        said = {
            "arch": cubin.arch,
            "toolkit": cubin.toolkit,
            "kernels": {name: asdict(r) for name, r in cubin.kernels.items()},
            "warnings": list(cubin.warnings),
        }
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / f"{key}.cubin", cubin.code)
            write_whole(self.folder / f"{key}.json", json.dumps(said).encode())
            self._trim()

    def _trim(self) -> None:
        kept = sorted((s.st_mtime_ns, s.st_size, p) for p in self.folder.glob("*.cubin") for s in [p.stat()])
        total = sum(size for _, size, _ in kept)
        if total <= self.most_bytes:
            return
        for _, size, path in kept:
            if total <= self.most_bytes * 3 // 4:
                return
            path.with_suffix(".json").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            total -= size
