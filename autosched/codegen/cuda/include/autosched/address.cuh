// Addresses of shared memory as instructions take them: 32 bits, counted from where the block's shared memory begins.
#pragma once

namespace autosched {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

}  // namespace autosched
