// Copies of 1 to 16 bytes at once. Both sides are aligned to that many bytes.
#pragma once

#include "autosched/address.cuh"
#include "autosched/types.cuh"

namespace autosched {

template <int Bytes>
struct Word;
template <>
struct Word<1> {
    using type = unsigned char;
};
template <>
struct Word<2> {
    using type = unsigned short;
};
template <>
struct Word<4> {
    using type = unsigned int;
};
template <>
struct Word<8> {
    using type = uint2;
};
template <>
struct Word<16> {
    using type = uint4;
};

template <int Bytes>
__device__ __forceinline__ void copy(void* to, const void* from) {
    using Type = typename Word<Bytes>::type;
    *static_cast<Type*>(to) = *static_cast<const Type*>(from);
}

// Zeros where nothing is `there`; `from` is not read then.
template <int Bytes>
__device__ __forceinline__ void copy_or_zero(void* to, const void* from, bool there) {
    using Type = typename Word<Bytes>::type;
    Type value = {};
    if (there) value = *static_cast<const Type*>(from);
    *static_cast<Type*>(to) = value;
}

// Copies from global to shared memory that run on (cp.async): 4, 8 or 16 bytes. Those of a thread since its last
// `end_copies` are a group. PTX ISA, cp.async. sm_80.
template <int Bytes>
__device__ __forceinline__ void start_copy(void* to, const void* from) {
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from), "n"(Bytes)
                     : "memory");
    }
}

// Zeros where nothing is `there`; `from` is not read then, but is an address of global memory.
template <int Bytes>
__device__ __forceinline__ void start_copy_or_zero(void* to, const void* from, bool there) {
    const int bytes = there ? Bytes : 0;
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from), "n"(Bytes),
                     "r"(bytes)
                     : "memory");
    }
}

__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// All groups but the last `Pending` of this thread have landed.
template <int Pending>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace autosched
