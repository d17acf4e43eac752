// A cluster: blocks that the emulator runs together.
#pragma once

namespace autosched {

__device__ __forceinline__ unsigned cluster_rank() { return emulate_rank(); }
__device__ __forceinline__ void meet_cluster() { emulate_meet_cluster(); }

}  // namespace autosched
