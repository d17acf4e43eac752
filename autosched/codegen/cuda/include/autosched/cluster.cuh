// A cluster: blocks that run together, and reach each other's shared memory. sm_90.
#pragma once

namespace autosched {

// The number of this block in its cluster.
__device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Where block `rank` of the cluster has what this block has here, in shared memory.
template <class T>
__device__ __forceinline__ T* in_block(T* here, unsigned rank) {
    unsigned long long there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(here), "r"(rank));
    return reinterpret_cast<T*>(there);
}

// All threads of all blocks of the cluster have come here, and see what any wrote before.
__device__ __forceinline__ void meet_cluster() {
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;" ::
            : "memory");
}

}  // namespace autosched
