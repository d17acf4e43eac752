// What stands around wgmma, the products of a warpgroup (128 threads) on operands in shared memory. The products
// themselves come from the descriptions of instructions. They run on while the threads go on:
//
//     group_begin(); products…; group_end();      starts a group of them
//     group_wait<1>();                            all groups but the last one have ended
//
// Between its first product and the end of its group nothing may touch an accumulator. PTX ISA, wgmma. sm_90a.
#pragma once

#include "autosched/address.cuh"

namespace autosched {

// What was written to registers and shared memory is seen by the products that follow.
__device__ __forceinline__ void group_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// The products since the last call are a group.
__device__ __forceinline__ void group_end() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// All groups but the last `Pending` have ended.
template <int Pending>
__device__ __forceinline__ void group_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// The compiler keeps reads and writes of these registers on their side of this line.
template <int Count>
__device__ __forceinline__ void hold(float (&values)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

template <int Count>
__device__ __forceinline__ void hold(unsigned (&values)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(values[i])::"memory");
}

template <int Count>
__device__ __forceinline__ void hold(int (&values)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(values[i])::"memory");
}

template <class Register, int Tiles, int Count>
__device__ __forceinline__ void hold(Register (&values)[Tiles][Count]) {
#pragma unroll
    for (int i = 0; i < Tiles; ++i) hold(values[i]);
}

template <class Register, int Rows, int Tiles, int Count>
__device__ __forceinline__ void hold(Register (&values)[Rows][Tiles][Count]) {
#pragma unroll
    for (int i = 0; i < Rows; ++i) hold(values[i]);
}

// How an operand lies in shared memory. `Swizzle` is the span in bytes in which chunks of 16 bytes change places (0,
// 32, 64 or 128). A core is 8 rows of one chunk. `leading` and `stride` are bytes from one core to the next:
//
//     rows run along k, no swizzle       leading: along k                stride: along m or n
//     rows run along k, swizzled         (not used)                      stride: along m or n
//     rows run along m or n, no swizzle  leading: along k                stride: along m or n
//     rows run along m or n, swizzled    leading: from span to span      stride: along k
template <int Swizzle>
__device__ __forceinline__ unsigned long long descriptor(const void* start, unsigned leading, unsigned stride) {
    static_assert(Swizzle == 0 || Swizzle == 32 || Swizzle == 64 || Swizzle == 128, "bytes of a span");
    constexpr unsigned long long mode = Swizzle == 128 ? 1 : Swizzle == 64 ? 2 : Swizzle == 32 ? 3 : 0;
    unsigned long long address = (shared_address(start) & 0x3ffff) >> 4;
    return address | static_cast<unsigned long long>(leading >> 4) << 16 |
           static_cast<unsigned long long>(stride >> 4) << 32 | mode << 62;
}

}  // namespace autosched
