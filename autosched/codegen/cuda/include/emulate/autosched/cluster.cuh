// A cluster: blocks that the emulator runs together.
#pragma once

namespace autosched {

__device__ __forceinline__ unsigned cluster_rank() { return emulate_rank(); }
template <class T>
__device__ __forceinline__ T* in_block(T* here, unsigned rank) { return static_cast<T*>(emulate_in_block(here, rank)); }
__device__ __forceinline__ void meet_cluster() { emulate_meet_cluster(); }

}  // namespace autosched
