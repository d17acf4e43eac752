// matmul_bias_relu: C = max(A B + D, 0).
// For nvidia-h200 (sm_90a).
//
// Schedule: reg_i = 2, warps_i = 2, reg_j = 1, warps_j = 1, raster = last fastest, stage_a = global, stage_b =
// global, block_p = 1, unroll = 1, swizzle = none, padding = none, copy = sync, stages = 1, vector = element, roles =
// together, persistent = no, group = 1, split = 1, fragments = in turn, epilogue = direct.
#include "autosched/address.cuh"
#include "autosched/convert.cuh"
#include "autosched/copy.cuh"
#include "autosched/fragment.cuh"
#include "autosched/limit.cuh"
#include "autosched/types.cuh"

using namespace autosched;

__device__ __forceinline__ float max_f32(float a, float b) {  /* NaN wins */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return a > b || a != a ? a : b;
#endif
}

__device__ __forceinline__ void wmma_m16n16k16_f16_f32_load_b_row(uint32_t (&b)[8], const void* from, int stride) {
    asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]),
          "=r"(b[4]), "=r"(b[5]), "=r"(b[6]), "=r"(b[7])
        : "l"(from), "r"(stride)
        : "memory");
}

__device__ __forceinline__ void wmma_m16n16k16_f16_f32_load_a_row(uint32_t (&a)[8], const void* from, int stride) {
    asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
        : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]),
          "=r"(a[4]), "=r"(a[5]), "=r"(a[6]), "=r"(a[7])
        : "r"(shared_address(from)), "r"(stride)
        : "memory");
}

__device__ __forceinline__ void wmma_m16n16k16_f16_f32_store_c_row(void* to, const float (&c)[8], int stride) {
    asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%0], {%2, %3, %4, %5, %6, %7, %8, %9}, %1;"
        :
        : "r"(shared_address(to)), "r"(stride), "f"(c[0]), "f"(c[1]),
          "f"(c[2]), "f"(c[3]), "f"(c[4]), "f"(c[5]),
          "f"(c[6]), "f"(c[7])
        : "memory");
}

// A warp's 16x16x16 f16 product added to f32.
__device__ __forceinline__ void wmma_m16n16k16_f16_f32_row_row(
        float (&c)[8], const uint32_t (&a)[8], const uint32_t (&b)[8]) {
    asm volatile("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, "
        "{%8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19, %20, %21, %22, %23}, "
        "{%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]),
          "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
          "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]),
          "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]),
          "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
}

// 4 blocks of 64 threads, 3,072 bytes of shared memory.
extern "C" __global__ void LIMIT_REGISTERS(64, 48) matmul_bias_relu(
        const f16* __restrict__ A,
        const f16* __restrict__ B,
        const float* __restrict__ D,
        f16* __restrict__ C) {
    extern __shared__ __align__(128) unsigned char shared[];
    f16* const stage_f16_256 = reinterpret_cast<f16*>(shared);  // [2, 256]
    float* const stage_f32_256 = reinterpret_cast<float*>(shared + 1024);  // [2, 256]
    const int jb = blockIdx.x;  // blocks of j
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    float acc[2][1][8];
    uint32_t b_reg[1][8];
    uint32_t a_reg[8];

    const f16* const B_at = &B[jb * 16];
    f16* const stage_f16_256_at = &stage_f16_256[warp * 256 + lane * 8];
    const f16* const A_at = &A[warp * 2048 + lane / 2 * 64 + lane % 2 * 8];
    f16* const stage_f16_256_at2 = &stage_f16_256[warp * 256];
    float* const stage_f32_256_at = &stage_f32_256[warp * 256];
    float* const stage_f32_256_at2 = &stage_f32_256[warp * 256 + lane * 8];
    const float* const D_at = &D[jb * 16 + lane % 2 * 8];
    f16* const C_at = &C[warp * 2048 + lane / 2 * 64 + jb * 16 + lane % 2 * 8];
    #pragma unroll
    for (int ir = 0; ir < 2; ++ir) {
        fill<float>(acc[ir][0], 0.0f);
    }
    #pragma unroll UNROLL(4)
    for (int pu = 0; pu < 4; ++pu) {
        wmma_m16n16k16_f16_f32_load_b_row(b_reg[0], &B_at[pu * 1024], 64);
        #pragma unroll
        for (int ir = 0; ir < 2; ++ir) {
            copy_or_zero<16>(stage_f16_256_at, &A_at[ir * 1024 + pu * 16], warp * 32 + ir * 16 + lane / 2 < 60);
            __syncwarp();
            wmma_m16n16k16_f16_f32_load_a_row(a_reg, stage_f16_256_at2, 16);
            __syncwarp();
            wmma_m16n16k16_f16_f32_row_row(acc[ir][0], a_reg, b_reg[0]);
        }
    }
    #pragma unroll
    for (int ir = 0; ir < 2; ++ir) {
        wmma_m16n16k16_f16_f32_store_c_row(stage_f32_256_at, acc[ir][0], 16);
        __syncwarp();
        if (warp * 32 + ir * 16 + lane / 2 < 60) {
            alignas(16) float stage_f32_256_run[8];
            copy<16>(stage_f32_256_run, stage_f32_256_at2);
            copy<16>(&stage_f32_256_run[4], &stage_f32_256_at2[4]);
            alignas(16) float D_run[8];
            copy<16>(D_run, D_at);
            copy<16>(&D_run[4], &D_at[4]);
            alignas(16) f16 row[8];
            #pragma unroll
            for (int x = 0; x < 8; ++x) row[x] = bits_f16(max_f32(stage_f32_256_run[x] + D_run[x], 0.0f));
            copy<16>(&C_at[ir * 1024], row);
        }
        __syncwarp();
    }
}
