// Registers are nobody's to share here.
#pragma once

namespace autosched {

template <int Count>
__device__ __forceinline__ void keep_registers() {}

template <int Count>
__device__ __forceinline__ void take_registers() {}

}  // namespace autosched
