"""The share of an array that lies in huge pages, so that two sides of a comparison can be seen to have the same."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.task import Array

SMAPS = Path("/proc/self/smaps")


def huge_share(array: Array, smaps: str | None = None) -> float | None:
    """Of the mapping that holds the middle of the array: what lies in huge pages, of what is resident (0 to 1). None
    where the system does not say. `smaps` is the text of /proc/self/smaps where it is known."""
    if smaps is None:
        if not SMAPS.exists():
            return None
        smaps = SMAPS.read_text(encoding="ascii", errors="replace")
    middle = array.ctypes.data + array.nbytes // 2
    inside, sizes = False, {"Rss": 0, "AnonHugePages": 0}
    for line in smaps.splitlines():
        first, _, rest = line.partition(" ")
        if "-" in first and not first.endswith(":"):
            low, high = (int(end, 16) for end in first.split("-"))
            inside = low <= middle < high
        elif inside and (name := first.rstrip(":")) in sizes:
            sizes[name] = int(rest.split()[0])
    return sizes["AnonHugePages"] / sizes["Rss"] if sizes["Rss"] else None
