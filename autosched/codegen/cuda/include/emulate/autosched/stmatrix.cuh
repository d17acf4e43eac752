// Fragments of 8x8 blocks of 16-bit elements to shared memory.
#pragma once

#include "autosched/address.cuh"

namespace autosched {

__device__ __forceinline__ void store_matrices(void* row, unsigned a, unsigned b, unsigned c, unsigned d) {
    const unsigned words[4] = {a, b, c, d};
    emulate_store_matrices(words, 4, row, false);
}

__device__ __forceinline__ void store_matrices(void* row, unsigned a, unsigned b) {
    const unsigned words[2] = {a, b};
    emulate_store_matrices(words, 2, row, false);
}

__device__ __forceinline__ void store_matrices_turned(void* row, unsigned a, unsigned b, unsigned c, unsigned d) {
    const unsigned words[4] = {a, b, c, d};
    emulate_store_matrices(words, 4, row, true);
}

}  // namespace autosched
