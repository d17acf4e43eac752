// mm
// For nvidia-rtx4090 (sm_120a).
//
// Schedule: reg_i = 2, warps_i = 2, reg_j = 2, warps_j = 1, raster = last fastest, stage_a = global, stage_sa =
// global, stage_b = global, stage_sb = global, block_p = 1, unroll = 1, swizzle = none, padding = none, copy = sync,
// stages = 1, vector = element, roles = together, persistent = no, group = 1, split = 1, fragments = in turn,
// epilogue = direct.
#include "autosched/copy.cuh"
#include "autosched/fragment.cuh"
#include "autosched/limit.cuh"
#include "autosched/types.cuh"

using namespace autosched;

// A warp's 16x8x64 e2m1 product added to f32, with a scale (e4m3, not negative) for 16 k.
__device__ __forceinline__ void mma_m16n8k64_e2m1_e2m1_f32_nvf4(
        float (&c)[4], const uint32_t (&a)[4], const uint32_t (&sa)[1], const uint32_t (&b)[2], const uint32_t (&sb)[1]) {
    asm volatile("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%9, %10}, {%0, %1, %2, %3}, {%8}, {0, 0}, {%11}, {0, 0};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
          "r"(sa[0]), "r"(b[0]), "r"(b[1]), "r"(sb[0]));
}

// 2 blocks of 64 threads.
extern "C" __global__ void LIMIT_REGISTERS(64, 47) mm(
        const uint8_t* __restrict__ A,
        const e4m3* __restrict__ S,
        const uint8_t* __restrict__ B,
        const e4m3* __restrict__ T,
        float* __restrict__ C) {
    const int jb = blockIdx.x;  // blocks of j
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    float acc[2][2][4];
    uint32_t b_reg[2][2];
    uint32_t sb_reg[2][1];
    uint32_t a_reg[4];
    uint32_t sa_reg[1];

    const e4m3* const T_at = &T[jb * 128 + lane / 4 * 8];
    const e4m3* const S_at = &S[warp * 256 + lane / 4 * 8 + lane % 2 * 64];
    float* const C_at = &C[warp * 1024 + lane / 4 * 32 + jb * 16 + lane % 4 * 2];
    #pragma unroll
    for (int ir = 0; ir < 2; ++ir) {
        #pragma unroll
        for (int jr = 0; jr < 2; ++jr) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) acc[ir][jr][v] = 0.0f;
        }
    }
    #pragma unroll UNROLL(2)
    for (int pu = 0; pu < 2; ++pu) {
        #pragma unroll
        for (int jr = 0; jr < 2; ++jr) {
            #pragma unroll
            for (int v = 0; v < 16; ++v) {
                put_element<4>(b_reg[jr], v, B[jb * 2048 + jr * 1024 + lane / 4 * 128 + pu * 64 + lane % 4 * 8 + v % 8 + v / 8 * 32]);
            }
        }
        #pragma unroll
        for (int jr = 0; jr < 2; ++jr) {
            copy<4>(sb_reg[jr], &T_at[jr * 64 + pu * 4]);
        }
        #pragma unroll
        for (int ir = 0; ir < 2; ++ir) {
            #pragma unroll
            for (int v = 0; v < 32; ++v) {
                put_element<4>(a_reg, v, A[warp * 4096 + ir * 2048 + lane / 4 * 128 + v / 8 % 2 * 1024 + pu * 64 + lane % 4 * 8 + v % 8 + v / 16 * 32]);
            }
            copy<4>(sa_reg, &S_at[ir * 128 + pu * 4]);
            #pragma unroll
            for (int jr = 0; jr < 2; ++jr) {
                mma_m16n8k64_e2m1_e2m1_f32_nvf4(acc[ir][jr], a_reg, sa_reg, b_reg[jr], sb_reg[jr]);
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
