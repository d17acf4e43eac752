// Addresses of shared memory: bytes from where the block's begins.
#pragma once

namespace autosched {

__device__ __forceinline__ unsigned shared_address(const void* pointer) { return emulate_shared_address(pointer); }

}  // namespace autosched
