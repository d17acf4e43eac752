"""Constants of a code generator for GPUs: what its code costs beyond the units of a device that it keeps busy.

A device's own figures stand in its target, in `rates` and in `block_cycles`, from documents and from what others
measured. These belong to the code that runs on it. `GENERATED` were learnt from our kernels, or are round figures; the
clock takes others for kernels that other people wrote (`benchmarks.published`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autosched.tiling.steps.gpu.operands.slice_copies import ASYNC, SYNC


@dataclass(frozen=True)
class GpuCode:
    """Cycles of a core where nothing else is said."""

    unhidden: float  # share of the shorter of two units' work that does not overlap with the longer
    copy_cycles: Mapping[int, float]  # by copy: of a warp's load, address and store; of its start of a copy
    slice_cycles: float  # of a slice where a warpgroup that starts its copies also waits for its products
    arrival_spread: float  # of the cycles between two slices' arrivals: how far the times of copies scatter
    meeting_cycles: float  # of a slice in which a cluster's blocks without a producer meet, for each but one
    cluster_share: float  # of what a block of a cluster takes, times what it takes alone
    multicast: float  # part of TMA's work that is saved of slices which others of a cluster ask for
    fill_turns: float  # of shared memory's turns where lines come from L2 and not from threads
    loads_in_flight: float  # of one warp that copies by hand, until it waits
    barrier_cycles: float  # of a block-wide barrier among a few warps
    together_share: float  # of a slice's cycles where workers start its copies
    store_bytes: float  # a cycle that one SM writes
    peer_bytes: float  # a cycle that one SM takes from the shared memory of others of its cluster
    scattered_store: float  # times as long where registers go to memory lane by lane: rows end within sectors
    exposed_store: Mapping[int, float]  # by epilogue: share of its store that a persistent block waits for
    most_fetched: float  # times its bytes that a fragment straight from memory takes from L2: neighbours use L1


GENERATED = GpuCode(
    unhidden=0.15,
    copy_cycles={SYNC: 6.0, ASYNC: 3.0},  # 200 rows of a 4096³ bf16 product on an H200, as the next two
    slice_cycles=250.0,
    arrival_spread=0.2,  # the best of 323 rows of seven products on an H100, by the order of the fastest
    meeting_cycles=700.0,
    cluster_share=1.02,  # 2 to 4 % more than the same row without a cluster, on an H200
    multicast=0.0,  # nothing on any of 40 pairs of rows there: blocks that run together find slices in L2 anyway
    fill_turns=2.0,  # two convolutions
    loads_in_flight=8.0,  # a round figure
    barrier_cycles=30.0,  # a round figure
    together_share=1.12,  # chosen with the published bf16 ladder in view
    store_bytes=32.0,  # a round figure
    peer_bytes=10.0,  # seen on an H200
    scattered_store=1.25,
    exposed_store={0: 0.6, 1: 0.6, 2: 0.3, 3: 0.35},  # of threads, and of TMA beside the next tile
    most_fetched=2.0,
)
