// matmul_nt: C = A Bᵀ.
// For nvidia-h200 (sm_90a).
//
// Schedule: reg_i = 2, threads_i = 16, reg_j = 4, threads_j = 8, raster = last fastest, stage_a = shared, stage_b =
// shared, block_p = 8, unroll = 1, swizzle = none, padding = none, copy = sync, stages = 1, vector = 16 B, persistent
// = no, group = 1, split = 1, fragments = in turn, epilogue = direct.
#include "autosched/copy.cuh"
#include "autosched/limit.cuh"
#include "autosched/types.cuh"

using namespace autosched;

// One thread's 4-way s8 x s8 dot product added to s32; wraps.
__device__ __forceinline__ void dp4a_s8_s8(int32_t (&c)[1], const uint32_t (&a)[1], const uint32_t (&b)[1]) {
    asm("dp4a.s32.s32 %0, %1, %2, %0;"
        : "+r"(c[0])
        : "r"(a[0]), "r"(b[0]));
}

// 8 x 8 blocks of 128 threads, 2,048 bytes of shared memory.
extern "C" __global__ void LIMIT_REGISTERS(128, 48) matmul_nt(
        const int8_t* __restrict__ A,
        const int8_t* __restrict__ B,
        int32_t* __restrict__ C) {
    extern __shared__ __align__(1024) unsigned char shared[];
    int8_t* const A_shared = reinterpret_cast<int8_t*>(shared);  // [1, 32, 2, 16]
    int8_t* const B_shared = reinterpret_cast<int8_t*>(shared + 1024);  // [1, 32, 2, 16]
    const int ib = blockIdx.y;  // blocks of i
    const int jb = blockIdx.x;  // blocks of j
    const int thread = threadIdx.x;
    int32_t acc[2][4][1];
    uint32_t b_reg[4][1];
    uint32_t a_reg[1];

    #pragma unroll
    for (int ir = 0; ir < 2; ++ir) {
        #pragma unroll
        for (int jr = 0; jr < 4; ++jr) {
            acc[ir][jr][0] = 0;
        }
    }
    int8_t* const A_shared_at = &A_shared[thread * 16];
    const int8_t* const A_at = &A[ib * 8192 + thread / 2 * 256 + thread % 2 * 16];
    int8_t* const B_shared_at = &B_shared[thread * 16];
    const int8_t* const B_at = &B[jb * 8192 + thread / 2 * 256 + thread % 2 * 16];
    int8_t* const B_shared_at2 = &B_shared[thread % 8 * 32];
    int8_t* const A_shared_at2 = &A_shared[thread / 8 * 32];
    #pragma unroll 1
    for (int slice = 0; slice < 8; ++slice) {  // slices of C
        __syncthreads();
        // copy a slice of A
        if (thread < 64) {
            copy_or_zero<16>(A_shared_at, &A_at[slice * 32], ib * 32 + thread / 2 < 250);
        }
        // copy a slice of B
        if (thread < 64) {
            copy<16>(B_shared_at, &B_at[slice * 32]);
        }
        __syncthreads();
        #pragma unroll UNROLL(8)
        for (int pu = 0; pu < 8; ++pu) {
            #pragma unroll
            for (int jr = 0; jr < 4; ++jr) {
                copy<4>(b_reg[jr], &B_shared_at2[jr * 256 + pu * 4]);
            }
            #pragma unroll
            for (int ir = 0; ir < 2; ++ir) {
                copy<4>(a_reg, &A_shared_at2[ir * 512 + pu * 4]);
                #pragma unroll
                for (int jr = 0; jr < 4; ++jr) {
                    dp4a_s8_s8(acc[ir][jr], a_reg, b_reg[jr]);
                }
            }
        }
    }
    #pragma unroll
    for (int ir = 0; ir < 2; ++ir) {
        #pragma unroll
        for (int jr = 0; jr < 4; ++jr) {
            if (ib * 32 + ir * 16 + thread / 8 < 250) {
                C[ib * 8192 + ir * 4096 + thread / 8 * 256 + jb * 32 + jr * 8 + thread % 8] = acc[ir][jr][0];
            }
        }
    }
}
