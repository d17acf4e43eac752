// Warpgroups of a block that do different work take different shares of its registers. sm_90a.
#pragma once

namespace autosched {

// All threads of the warpgroup keep `Count` registers each and give up the rest (24 to 256, a multiple of 8).
template <int Count>
__device__ __forceinline__ void keep_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

// All threads of the warpgroup wait until they can have `Count` registers each.
template <int Count>
__device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

}  // namespace autosched
