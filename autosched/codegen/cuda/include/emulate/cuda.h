// CUDA's own words on the host: what a printed file takes for granted, before its first line.
#pragma once

#include "api.h"

#define __CUDACC_RTC__ 1  // no headers of the C library, as under NVRTC
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__ static __attribute__((section("emulate_shared")))
#define __constant__ static const
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) alignas(n)

#define threadIdx (emulate_thread())
#define blockIdx (emulate_block())
#define blockDim (emulate_block_size())
#define gridDim (emulate_grid_size())

#define __syncthreads emulate_meet_block

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

__forceinline__ void __syncwarp(unsigned mask = 0xffffffffu) { emulate_meet_warp(mask); }

namespace emulate {

template <class To, class From>
__forceinline__ To bits(From value) {
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, value);
}

// A value of 4 bytes or less through a shuffle.
template <class T>
__forceinline__ T shuffled(unsigned mask, T value, unsigned source) {
    static_assert(sizeof(T) == 4, "shuffles move 32 bits");
    return bits<T>(emulate_shuffle(mask, bits<unsigned>(value), source));
}

__forceinline__ unsigned lane() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32; }

}  // namespace emulate

template <class T>
__forceinline__ T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    return emulate::shuffled(mask, value, (emulate::lane() & ~(width - 1)) | (source & (width - 1)));
}

template <class T>
__forceinline__ T __shfl_xor_sync(unsigned mask, T value, int bits, int = 32) {
    return emulate::shuffled(mask, value, emulate::lane() ^ bits);
}

template <class T>
__forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    const unsigned lane = emulate::lane();
    return emulate::shuffled(mask, value, lane % width + by < unsigned(width) ? lane + by : lane);
}

__forceinline__ unsigned __ballot_sync(unsigned mask, bool is) { return emulate_ballot(mask, is); }

__forceinline__ float __int_as_float(int v) { return emulate::bits<float>(v); }
__forceinline__ int __float_as_int(float v) { return emulate::bits<int>(v); }
__forceinline__ float __uint_as_float(unsigned v) { return emulate::bits<float>(v); }
__forceinline__ unsigned __float_as_uint(float v) { return emulate::bits<unsigned>(v); }
__forceinline__ double __longlong_as_double(long long v) { return emulate::bits<double>(v); }
__forceinline__ long long __double_as_longlong(double v) { return emulate::bits<long long>(v); }

// The C library, without its headers, whose integer types are not CUDA's.
extern "C" {
float expf(float), logf(float), sqrtf(float), tanhf(float), erff(float), floorf(float), ceilf(float), rintf(float), fabsf(float),
    fmaf(float, float, float), fmaxf(float, float), fminf(float, float), truncf(float), exp2f(float), log2f(float), roundf(float),
    nearbyintf(float), copysignf(float, float), fmodf(float, float);
double exp(double), log(double), sqrt(double), tanh(double), erf(double), floor(double), ceil(double), rint(double), fabs(double),
    fma(double, double, double), fmax(double, double), fmin(double, double), trunc(double), exp2(double), log2(double),
    round(double), nearbyint(double), copysign(double, double), fmod(double, double);
long lrint(double);
void* memcpy(void*, const void*, unsigned long);
long long llrint(double), llrintf(float);
}
__forceinline__ float rsqrtf(float x) { return 1.0f / sqrtf(x); }
__forceinline__ double rsqrt(double x) { return 1.0 / sqrt(x); }
__forceinline__ float __expf(float x) { return expf(x); }
__forceinline__ float __fadd_rn(float a, float b) { return a + b; }
__forceinline__ float __fmul_rn(float a, float b) { return a * b; }
__forceinline__ float __fsub_rn(float a, float b) { return a - b; }
__forceinline__ float __fdiv_rn(float a, float b) { return a / b; }
__forceinline__ float __fsqrt_rn(float a) { return sqrtf(a); }
__forceinline__ double __dadd_rn(double a, double b) { return a + b; }
__forceinline__ double __dmul_rn(double a, double b) { return a * b; }
__forceinline__ int __popc(unsigned x) { return __builtin_popcount(x); }
__forceinline__ int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
#ifndef __clang__
__forceinline__ bool isnan(float x) { return __builtin_isnan(x); }
__forceinline__ bool isnan(double x) { return __builtin_isnan(x); }
__forceinline__ bool isinf(float x) { return __builtin_isinf(x); }
__forceinline__ bool isinf(double x) { return __builtin_isinf(x); }
#endif
template <class T>
__forceinline__ T min(T a, T b) { return b < a ? b : a; }
template <class T>
__forceinline__ T max(T a, T b) { return a < b ? b : a; }

template <class T>
__forceinline__ T atomicAdd(T* address, T value) {
    const T before = *address;
    *address = before + value;
    return before;
}
