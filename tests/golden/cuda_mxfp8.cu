// mm
// For nvidia-rtx4090 (sm_120a).
//
// Schedule: reg_i = 2, warps_i = 2, reg_j = 2, warps_j = 1, raster = last fastest, stage_a = global, stage_sa =
// global, stage_b = global, stage_sb = global, block_q = 1, unroll = 1, swizzle = none, padding = none, copy = sync,
// stages = 1, vector = element, roles = together, persistent = no, group = 1, split = 1, fragments = in turn,
// epilogue = direct.
#include "autosched/copy.cuh"
#include "autosched/fragment.cuh"
#include "autosched/limit.cuh"
#include "autosched/types.cuh"

using namespace autosched;

// A warp's 16x8x32 e4m3 x e4m3 product added to f32, with a scale (e8m0) for each row of a and column of b.
__device__ __forceinline__ void mma_m16n8k32_e4m3_e4m3_f32_mxf8f6f4(
        float (&c)[4], const uint32_t (&a)[4], const uint32_t (&sa)[1], const uint32_t (&b)[2], const uint32_t (&sb)[1]) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%9, %10}, {%0, %1, %2, %3}, {%8}, {0, 0}, {%11}, {0, 0};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
          "r"(sa[0]), "r"(b[0]), "r"(b[1]), "r"(sb[0]));
}

// 2 blocks of 64 threads.
extern "C" __global__ void LIMIT_REGISTERS(64, 47) mm(
        const e4m3* __restrict__ A,
        const uint8_t* __restrict__ S,
        const e4m3* __restrict__ B,
        const uint8_t* __restrict__ T,
        float* __restrict__ C) {
    const int jb = blockIdx.x;  // blocks of j
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    float acc[2][2][4];
    uint32_t b_reg[2][2];
    uint32_t sb_reg[2][1];
    uint32_t a_reg[4];
    uint32_t sa_reg[1];

    const e4m3* const B_at = &B[jb * 2048 + lane / 4 * 128 + lane % 4 * 4];
    const e4m3* const A_at = &A[warp * 4096 + lane / 4 * 128 + lane % 4 * 4];
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
    for (int hu = 0; hu < 4; ++hu) {
        #pragma unroll
        for (int jr = 0; jr < 2; ++jr) {
            #pragma unroll
            for (int u = 0; u < 2; ++u) copy<4>(&b_reg[jr][u], &B_at[jr * 1024 + hu * 32 + u * 16]);
        }
        #pragma unroll
        for (int jr = 0; jr < 2; ++jr) {
            element<uint8_t>(sb_reg[jr], 0) = T[jb * 64 + jr * 32 + lane / 4 * 4 + hu];
        }
        #pragma unroll
        for (int ir = 0; ir < 2; ++ir) {
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                copy<4>(&a_reg[u], &A_at[ir * 2048 + u % 2 * 1024 + hu * 32 + u / 2 * 16]);
            }
            element<uint8_t>(sa_reg, 0) = S[warp * 128 + ir * 64 + lane / 4 * 4 + lane % 2 * 32 + hu];
            #pragma unroll
            for (int jr = 0; jr < 2; ++jr) {
                mma_m16n8k32_e4m3_e4m3_f32_mxf8f6f4(acc[ir][jr], a_reg, sa_reg, b_reg[jr], sb_reg[jr]);
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
