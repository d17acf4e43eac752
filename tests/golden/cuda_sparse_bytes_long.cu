// mm
// For nvidia-a100 (sm_80).
//
// Schedule: reg_i = 2, warps_i = 2, reg_j = 2, warps_j = 1, raster = last fastest, stage_a = global, stage_e =
// global, stage_b = global, block_q = 1, unroll = 1, swizzle = none, padding = none, copy = sync, stages = 1, vector
// = element, persistent = no, group = 1, split = 1, fragments = in turn, epilogue = direct.
#include "autosched/copy.cuh"
#include "autosched/fragment.cuh"
#include "autosched/limit.cuh"
#include "autosched/types.cuh"

using namespace autosched;

// A warp's 16x8x64 s8 product added to int32, of a that keeps two of each four k; wraps.
__device__ __forceinline__ void mma_sp_m16n8k64_s8_s8_s32(
        int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&e)[1], const uint32_t (&b)[4]) {
    asm volatile("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%9, %10, %11, %12}, {%0, %1, %2, %3}, {%8}, 0x0;"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
          "r"(e[0]), "r"(b[0]), "r"(b[1]), "r"(b[2]),
          "r"(b[3]));
}

// 2 blocks of 64 threads.
extern "C" __global__ void LIMIT_REGISTERS(64, 48) mm(
        const int8_t* __restrict__ A,
        const uint8_t* __restrict__ E,
        const int8_t* __restrict__ B,
        int32_t* __restrict__ C) {
    const int jb = blockIdx.x;  // blocks of j
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    int32_t acc[2][2][4];
    uint32_t b_reg[2][4];
    uint32_t a_reg[4];
    uint32_t e_reg[1];

    const int8_t* const B_at = &B[jb * 2048 + lane / 4 * 128 + lane % 4 * 4];
    const int8_t* const A_at = &A[warp * 2048 + lane / 4 * 64 + lane % 4 * 4];
    const uint8_t* const E_at = &E[warp * 2048 + lane % 2 * 512 + lane / 4 * 64 + lane / 2 % 2 * 16];
    int32_t* const C_at = &C[warp * 1024 + lane / 4 * 32 + jb * 16 + lane % 4 * 2];
    #pragma unroll
    for (int ir = 0; ir < 2; ++ir) {
        #pragma unroll
        for (int jr = 0; jr < 2; ++jr) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) acc[ir][jr][v] = 0;
        }
    }
    #pragma unroll UNROLL(2)
    for (int qu = 0; qu < 2; ++qu) {
        #pragma unroll
        for (int jr = 0; jr < 2; ++jr) {
            #pragma unroll
            for (int u = 0; u < 4; ++u) copy<4>(&b_reg[jr][u], &B_at[jr * 1024 + qu * 64 + u * 16]);
        }
        #pragma unroll
        for (int ir = 0; ir < 2; ++ir) {
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                copy<4>(&a_reg[u], &A_at[ir * 1024 + u % 2 * 512 + qu * 32 + u / 2 * 16]);
            }
            {
                alignas(16) uint8_t E_run[16];
                copy<16>(E_run, &E_at[ir * 1024 + qu * 32]);
                #pragma unroll
                for (int x = 0; x < 16; ++x) put_element<2>(e_reg, x, E_run[x]);
            }
            #pragma unroll
            for (int jr = 0; jr < 2; ++jr) {
                mma_sp_m16n8k64_s8_s8_s32(acc[ir][jr], a_reg, e_reg, b_reg[jr]);
            }
        }
    }
    #pragma unroll
    for (int ir = 0; ir < 2; ++ir) {
        #pragma unroll
        for (int jr = 0; jr < 2; ++jr) {
            #pragma unroll
            for (int u = 0; u < 2; ++u) copy<8>(&C_at[ir * 512 + u * 256 + jr * 8], &acc[ir][jr][u * 2]);
        }
    }
}
