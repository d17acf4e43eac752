// Registers of one lane that hold several elements each, and their elements.
//
// A fragment is an array of 32-bit registers. Its elements are numbered from the low bits of the first register up.
// Indices are constants once loops are unrolled, so that nothing of it lives in memory.
#pragma once

#include "autosched/types.cuh"

namespace autosched {

// Element `v` of a fragment, to read or to write.
template <class Element, int Count>
__device__ __forceinline__ Element& element(uint32_t (&registers)[Count], int v) {
    return reinterpret_cast<Element*>(registers)[v];
}

// Elements of `Bits` bits, below a byte.
template <int Bits, int Count>
__device__ __forceinline__ uint32_t narrow_element(const uint32_t (&registers)[Count], int v) {
    return registers[v * Bits / 32] >> v * Bits % 32 & ((1u << Bits) - 1u);
}

template <int Bits, int Count>
__device__ __forceinline__ void put_element(uint32_t (&registers)[Count], int v, uint32_t value) {
    const uint32_t mask = (1u << Bits) - 1u;
    registers[v * Bits / 32] = (registers[v * Bits / 32] & ~(mask << v * Bits % 32)) | (value & mask) << v * Bits % 32;
}

// Fragments that follow each other, as one of `Count` registers.
template <int Count, class Register, int Held>
__device__ __forceinline__ Register (&joined(Register (&registers)[Held]))[Count] {
    return reinterpret_cast<Register(&)[Count]>(registers);
}

// Registers of 32-bit elements as the words that a load fills.
template <class Register, int Count>
__device__ __forceinline__ uint32_t (&words(Register (&registers)[Count]))[Count] {
    return reinterpret_cast<uint32_t(&)[Count]>(registers);
}

// Every register takes the same bits.
template <class Register, int Count>
__device__ __forceinline__ void fill(Register (&registers)[Count], Register value) {
#pragma unroll
    for (int r = 0; r < Count; ++r) registers[r] = value;
}

}  // namespace autosched
