// Fragments of 8x8 blocks of 16-bit elements to shared memory. Lane 8 i + r says where row r of block i goes (16
// bytes); word i of a lane holds elements 2 (lane % 4) and one more of row lane / 4 of block i. PTX ISA, stmatrix.
// sm_90.
#pragma once

#include "autosched/address.cuh"

namespace autosched {

__device__ __forceinline__ void store_matrices(void* row, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(a),
                 "r"(b), "r"(c), "r"(d)
                 : "memory");
}

__device__ __forceinline__ void store_matrices(void* row, unsigned a, unsigned b) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(shared_address(row)), "r"(a), "r"(b)
                 : "memory");
}

// The same of transposed blocks: word i holds elements of column lane / 4 of block i.
__device__ __forceinline__ void store_matrices_turned(void* row, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

}  // namespace autosched
