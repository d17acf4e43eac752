// Registers are nobody's to share here; one lane of a warp is elected all the same.
#pragma once

namespace autosched {

template <int Count>
__device__ __forceinline__ void keep_registers() {}

template <int Count>
__device__ __forceinline__ void take_registers() {}

__device__ __forceinline__ bool elected() { return emulate_elected(); }

}  // namespace autosched
