// Barriers in shared memory: the emulator keeps their state, by address.
#pragma once

#include "autosched/address.cuh"

namespace autosched {

using Barrier = unsigned long long;

__device__ __forceinline__ void barrier_init(Barrier* barrier, unsigned arrivals) { emulate_barrier_init(barrier, arrivals); }
__device__ __forceinline__ void fence_barriers() { emulate_fence_barriers(); }
__device__ __forceinline__ void barrier_arrive(Barrier* barrier) { emulate_barrier_arrive(barrier, -1); }
__device__ __forceinline__ void barrier_arrive(Barrier* barrier, unsigned rank) { emulate_barrier_arrive(barrier, rank); }
__device__ __forceinline__ void barrier_release(Barrier* barrier, unsigned rank) { emulate_barrier_arrive(barrier, rank); }
__device__ __forceinline__ void barrier_expect(Barrier* barrier, unsigned bytes) { emulate_barrier_expect(barrier, bytes); }
__device__ __forceinline__ void barrier_wait(Barrier* barrier, unsigned parity) { emulate_barrier_wait(barrier, parity); }
__device__ __forceinline__ void barrier_wait_cluster(Barrier* barrier, unsigned parity) { emulate_barrier_wait(barrier, parity); }
__device__ __forceinline__ void meet(int number, int threads) { emulate_meet(number, threads); }
__device__ __forceinline__ void fence_async() { emulate_fence_async(); }

}  // namespace autosched
