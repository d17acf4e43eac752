// Barriers in shared memory (mbarrier): the threads of a block, of a cluster, and TMA meet at them.
//
// A barrier passes through phases. A phase ends once `arrivals` have come and all bytes that were announced have
// landed. Who waits names the parity of the phase: 0 for the first, 1 for the second, 0 for the third. A wait for
// parity 1 at a new barrier passes at once, as if a phase before the first had ended: what a producer waits for when
// nothing is used yet.
//
// PTX ISA, mbarrier. sm_90.
#pragma once

#include "autosched/address.cuh"

namespace autosched {

// One barrier: 8 bytes, on 8 bytes.
using Barrier = unsigned long long;

// A new barrier, by one thread; `fence_barriers` and a barrier of the block (or cluster) stand before its first use.
__device__ __forceinline__ void barrier_init(Barrier* barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// New barriers are seen by TMA and by the other blocks of the cluster.
__device__ __forceinline__ void fence_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// One arrival.
__device__ __forceinline__ void barrier_arrive(Barrier* barrier) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// One arrival at the barrier of the same name in block `rank` of the cluster. It orders copies of the engine and products
// that have ended, not ordinary writes to other blocks' memory: a release in the whole cluster would wait for all of them.
__device__ __forceinline__ void barrier_arrive(Barrier* barrier, unsigned rank) {
    asm volatile(
        "{\n"
        "  .reg .b32 there;\n"
        "  mapa.shared::cluster.u32 there, %0, %1;\n"
        "  mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}" ::"r"(shared_address(barrier)),
        "r"(rank)
        : "memory");
}

// The same, and what this thread has written, and what it knows of, is seen by those who wait there with
// `barrier_wait_cluster`.
__device__ __forceinline__ void barrier_release(Barrier* barrier, unsigned rank) {
    asm volatile(
        "{\n"
        "  .reg .b32 there;\n"
        "  mapa.shared::cluster.u32 there, %0, %1;\n"
        "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n"
        "}" ::"r"(shared_address(barrier)),
        "r"(rank)
        : "memory");
}

// One arrival, and `bytes` more that copies will bring before the phase can end.
__device__ __forceinline__ void barrier_expect(Barrier* barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

// Go on once the phase of this parity has ended.
__device__ __forceinline__ void barrier_wait(Barrier* barrier, unsigned parity) {
    asm volatile(
        "{\n"
        "  .reg .pred over;\n"
        "again:\n"
        "  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 over, [%0], %1;\n"
        "  @!over bra again;\n"
        "}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// The same, and what other blocks of the cluster wrote before they arrived is seen.
__device__ __forceinline__ void barrier_wait_cluster(Barrier* barrier, unsigned parity) {
    asm volatile(
        "{\n"
        "  .reg .pred over;\n"
        "again:\n"
        "  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], %1;\n"
        "  @!over bra again;\n"
        "}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// Some warps of a block meet: `threads` of them in all (a multiple of 32), at barrier 1 to 15.
__device__ __forceinline__ void meet(int number, int threads) {
    asm volatile("barrier.cta.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// What this thread has written to shared memory is seen by TMA and by wgmma after the next barrier. What it
// reads there has been read: without it an arrival may overtake loads that are still on their way.
__device__ __forceinline__ void fence_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace autosched
