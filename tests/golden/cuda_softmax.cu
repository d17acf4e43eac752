// softmax: Y[i] = exp(X[i] - max X[i]) / sum.
// For nvidia-h200 (sm_90a).
//
// Schedule: M.vector = 4, M.unroll = 1, M.warps = 4, M.rows = 1, M.hold = registers, M.threads = 1.
#include "autosched/copy.cuh"
#include "autosched/lanes.cuh"
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

// 512 blocks of 128 threads, 32 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128) softmax(const float* __restrict__ X, float* __restrict__ Y) {
    extern __shared__ __align__(128) unsigned char shared[];
    float* const M_parts = reinterpret_cast<float*>(shared);  // [4]
    float* const S_parts = reinterpret_cast<float*>(shared + 16);  // [4]
    const int block = blockIdx.x;  // rows
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    alignas(16) float M_acc[4];
    alignas(16) float X_now[3][4];
    float M_sum[1];
    float M_other[1];
    float M_row[1];
    alignas(16) float S_acc[4];
    alignas(16) float S_kept[3][4];
    float S_sum[1];
    float S_other[1];
    float S_row[1];
    float Y_scale[1];
    float Y_divisor[1];
    float Y_inverse[1];
    alignas(16) float Y_dividend[4];
    alignas(16) float Y_quotient[4];
    alignas(16) float Y_rest[4];

    const float* const X_at = &X[block * 1500 + warp * 128 + lane * 4];
    #pragma unroll
    for (int v = 0; v < 4; ++v) M_acc[v] = -INFINITY;
    #pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
        copy<16>(X_now[chunk], &X_at[chunk * 512]);
    }
    copy_or_zero<16>(X_now[2], &X[block * 1500 + warp * 128 + lane * 4 + 1024], warp * 32 + lane < 119);
    #pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) M_acc[v] = max_f32(X_now[chunk][v], M_acc[v]);
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        M_acc[v] = (warp * 128 + lane * 4 + v < 476) ? max_f32(X_now[2][v], M_acc[v]) : M_acc[v];
    }
    M_sum[0] = max_f32(max_f32(max_f32(M_acc[0], M_acc[1]), M_acc[2]), M_acc[3]);
    M_other[0] = of_partner(M_sum[0], 16);
    M_sum[0] = max_f32(M_sum[0], M_other[0]);
    M_other[0] = of_partner(M_sum[0], 8);
    M_sum[0] = max_f32(M_sum[0], M_other[0]);
    M_other[0] = of_partner(M_sum[0], 4);
    M_sum[0] = max_f32(M_sum[0], M_other[0]);
    M_other[0] = of_partner(M_sum[0], 2);
    M_sum[0] = max_f32(M_sum[0], M_other[0]);
    M_other[0] = of_partner(M_sum[0], 1);
    M_sum[0] = max_f32(M_sum[0], M_other[0]);
    M_row[0] = of_lane(M_sum[0], 0);
    if (lane == 0) M_parts[warp] = M_row[0];
    __syncthreads();
    M_sum[0] = M_parts[lane % 4];
    M_other[0] = of_partner(M_sum[0], 2);
    M_sum[0] = max_f32(M_sum[0], M_other[0]);
    M_other[0] = of_partner(M_sum[0], 1);
    M_sum[0] = max_f32(M_sum[0], M_other[0]);
    M_row[0] = of_lane(M_sum[0], 0);
    #pragma unroll
    for (int v = 0; v < 4; ++v) S_acc[v] = 0.0f;
    #pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) S_kept[chunk][v] = (float)exp(X_now[chunk][v] - M_row[0]);
        #pragma unroll
        for (int v = 0; v < 4; ++v) S_acc[v] = S_acc[v] + S_kept[chunk][v];
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) S_kept[2][v] = (float)exp(X_now[2][v] - M_row[0]);
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
        S_acc[v] = (warp * 128 + lane * 4 + v < 476) ? S_acc[v] + S_kept[2][v] : S_acc[v];
    }
    S_sum[0] = S_acc[0] + S_acc[1] + S_acc[2] + S_acc[3];
    S_other[0] = of_partner(S_sum[0], 16);
    S_sum[0] = S_sum[0] + S_other[0];
    S_other[0] = of_partner(S_sum[0], 8);
    S_sum[0] = S_sum[0] + S_other[0];
    S_other[0] = of_partner(S_sum[0], 4);
    S_sum[0] = S_sum[0] + S_other[0];
    S_other[0] = of_partner(S_sum[0], 2);
    S_sum[0] = S_sum[0] + S_other[0];
    S_other[0] = of_partner(S_sum[0], 1);
    S_sum[0] = S_sum[0] + S_other[0];
    S_row[0] = of_lane(S_sum[0], 0);
    if (lane == 0) S_parts[warp] = S_row[0];
    __syncthreads();
    float* const Y_at = &Y[block * 1500 + warp * 128 + lane * 4];
    S_sum[0] = S_parts[lane % 4];
    S_other[0] = of_partner(S_sum[0], 2);
    S_sum[0] = S_sum[0] + S_other[0];
    S_other[0] = of_partner(S_sum[0], 1);
    S_sum[0] = S_sum[0] + S_other[0];
    S_row[0] = of_lane(S_sum[0], 0);
    Y_scale[0] = fabsf(S_row[0]) < 5.421011e-20f ? 1.8446744e+19f : 1.0f;
    Y_divisor[0] = S_row[0] * Y_scale[0];
    Y_inverse[0] = 1.0f / Y_divisor[0];
    #pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) Y_dividend[v] = S_kept[chunk][v] * Y_scale[0];
        #pragma unroll
        for (int v = 0; v < 4; ++v) Y_quotient[v] = Y_dividend[v] * Y_inverse[0];
        #pragma unroll
        for (int v = 0; v < 4; ++v) Y_rest[v] = fmaf(-Y_quotient[v], Y_divisor[0], Y_dividend[v]);
        {
            alignas(16) float row[4];
            #pragma unroll
            for (int x = 0; x < 4; ++x) {
                row[x] = fabsf(Y_rest[x]) < INFINITY ? fmaf(Y_rest[x], Y_inverse[0], Y_quotient[x]) : Y_quotient[x];
            }
            copy<16>(&Y_at[chunk * 512], row);
        }
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) Y_dividend[v] = S_kept[2][v] * Y_scale[0];
    #pragma unroll
    for (int v = 0; v < 4; ++v) Y_quotient[v] = Y_dividend[v] * Y_inverse[0];
    #pragma unroll
    for (int v = 0; v < 4; ++v) Y_rest[v] = fmaf(-Y_quotient[v], Y_divisor[0], Y_dividend[v]);
    if (warp * 32 + lane < 119) {
        alignas(16) float row[4];
        #pragma unroll
        for (int x = 0; x < 4; ++x) {
            row[x] = fabsf(Y_rest[x]) < INFINITY ? fmaf(Y_rest[x], Y_inverse[0], Y_quotient[x]) : Y_quotient[x];
        }
        copy<16>(&Y[block * 1500 + warp * 128 + lane * 4 + 1024], row);
    }
}
