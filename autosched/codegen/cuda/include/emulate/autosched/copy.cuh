// Copies of 1 to 16 bytes at once; those that run on land when the emulator likes, at the latest where they are waited for.
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
    emulate_aligned(to, Bytes);
    emulate_aligned(from, Bytes);
    *static_cast<Type*>(to) = *static_cast<const Type*>(from);
}

template <int Bytes>
__device__ __forceinline__ void copy_or_zero(void* to, const void* from, bool there) {
    using Type = typename Word<Bytes>::type;
    Type value = {};
    emulate_aligned(to, Bytes);
    if (there) emulate_aligned(from, Bytes);
    if (there) value = *static_cast<const Type*>(from);
    *static_cast<Type*>(to) = value;
}

template <int Bytes>
__device__ __forceinline__ void start_copy(void* to, const void* from) {
    emulate_copy(to, from, Bytes, Bytes);
}

template <int Bytes>
__device__ __forceinline__ void start_copy_or_zero(void* to, const void* from, bool there) {
    emulate_copy(to, from, Bytes, there ? Bytes : 0);
}

__device__ __forceinline__ void end_copies() { emulate_copy_commit(); }

template <int Pending>
__device__ __forceinline__ void wait_copies() {
    emulate_copy_wait(Pending);
}

}  // namespace autosched
