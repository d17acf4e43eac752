// What stands around the products of a warpgroup; descriptors are the machine's own.
#pragma once

#include "autosched/address.cuh"

namespace autosched {

__device__ __forceinline__ void group_begin() { emulate_group_begin(); }
__device__ __forceinline__ void group_end() { emulate_group_end(); }

template <int Pending>
__device__ __forceinline__ void group_wait() {
    emulate_group_wait(Pending);
}

template <class T, int Count>
__device__ __forceinline__ void hold(T (&)[Count]) {}

template <int Swizzle>
__device__ __forceinline__ unsigned long long descriptor(const void* start, unsigned leading, unsigned stride) {
    static_assert(Swizzle == 0 || Swizzle == 32 || Swizzle == 64 || Swizzle == 128, "bytes of a span");
    constexpr unsigned long long mode = Swizzle == 128 ? 1 : Swizzle == 64 ? 2 : Swizzle == 32 ? 3 : 0;
    unsigned long long address = (shared_address(start) & 0x3ffff) >> 4;
    return address | static_cast<unsigned long long>(leading >> 4) << 16 |
           static_cast<unsigned long long>(stride >> 4) << 32 | mode << 62;
}

}  // namespace autosched
