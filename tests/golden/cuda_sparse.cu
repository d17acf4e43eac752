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

// A warp's 16x8x32 bf16 product added to f32, of a that keeps two of each four k.
__device__ __forceinline__ void mma_sp_m16n8k32_bf16_bf16_f32(
        float (&c)[4], const uint32_t (&a)[4], const uint32_t (&e)[1], const uint32_t (&b)[4]) {
    asm volatile("mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%9, %10, %11, %12}, {%0, %1, %2, %3}, {%8}, 0x0;"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
          "r"(e[0]), "r"(b[0]), "r"(b[1]), "r"(b[2]),
          "r"(b[3]));
}

// 2 blocks of 64 threads.
extern "C" __global__ void LIMIT_REGISTERS(64, 48) mm(
        const bf16* __restrict__ A,
        const uint8_t* __restrict__ E,
        const bf16* __restrict__ B,
        float* __restrict__ C) {
    const int jb = blockIdx.x;  // blocks of j
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    float acc[2][2][4];
    uint32_t b_reg[2][4];
    uint32_t a_reg[4];
    uint32_t e_reg[1];

    const bf16* const B_at = &B[jb * 2048 + lane / 4 * 128 + lane % 4 * 2];
    const bf16* const A_at = &A[warp * 2048 + lane / 4 * 64 + lane % 4 * 2];
    const uint8_t* const E_at = &E[warp * 2048 + lane / 4 * 64 + lane % 2 * 8];
    float* const C_at = &C[warp * 1024 + lane / 4 * 32 + jb * 16 + lane % 4 * 2];
    #pragma unroll
    for (int ir = 0; ir < 2; ++ir) {
        #pragma unroll
        for (int jr = 0; jr < 2; ++jr) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) acc[ir][jr][v] = 0.0f;
        }
    }
    #pragma unroll UNROLL(4)
    for (int qu = 0; qu < 4; ++qu) {
        #pragma unroll
        for (int jr = 0; jr < 2; ++jr) {
            #pragma unroll
            for (int u = 0; u < 4; ++u) copy<4>(&b_reg[jr][u], &B_at[jr * 1024 + qu * 32 + u * 8]);
        }
        #pragma unroll
        for (int ir = 0; ir < 2; ++ir) {
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                copy<4>(&a_reg[u], &A_at[ir * 1024 + u % 2 * 512 + qu * 16 + u / 2 * 8]);
            }
            #pragma unroll
            for (int u = 0; u < 2; ++u) {
                alignas(8) uint8_t E_run[8];
                copy<8>(E_run, &E_at[ir * 1024 + u * 512 + qu * 16]);
                #pragma unroll
                for (int x = 0; x < 8; ++x) put_element<2>(e_reg, u * 8 + x, E_run[x]);
            }
            #pragma unroll
            for (int jr = 0; jr < 2; ++jr) {
                mma_sp_m16n8k32_bf16_bf16_f32(acc[ir][jr], a_reg, e_reg, b_reg[jr]);
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
