// Small floats, as their bits, from and to float: by the machine's own conversions where it has them. All round to
// nearest even; what is too large for a format of 16 bits becomes infinity.
#pragma once

#include "autosched/types.cuh"

namespace autosched {

__device__ __forceinline__ uint32_t bits_of_float(float x) { return __float_as_uint(x); }
__device__ __forceinline__ float float_of_bits(uint32_t bits) { return __uint_as_float(bits); }

__device__ __forceinline__ float load_bf16(bf16 bits) { return float_of_bits(static_cast<uint32_t>(bits) << 16); }

#ifdef __CUDA_ARCH__

__device__ __forceinline__ float load_f16(f16 bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

__device__ __forceinline__ f16 bits_f16(float x) {
    f16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ bf16 bits_bf16(float x) {
    bf16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
#endif

#if __CUDA_ARCH__ >= 890
// The instructions stop at the greatest number of a format; where rounding goes beyond it is NaN in e4m3, infinity in e5m2.
// Older machines get these from the printed file itself.
__device__ __forceinline__ e4m3 bits_e4m3(float x) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    const uint32_t sign = bits_of_float(x) >> 24 & 0x80u;
    return static_cast<e4m3>(fabsf(x) <= 464.0f ? pair : sign | 0x7fu);
}

__device__ __forceinline__ float load_e4m3(e4m3 bits) {
    uint32_t pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<uint16_t>(bits)));
    return load_f16(static_cast<f16>(pair));
}

__device__ __forceinline__ e5m2 bits_e5m2(float x) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    const uint32_t sign = bits_of_float(x) >> 24 & 0x80u;
    return static_cast<e5m2>(fabsf(x) < 61440.0f ? pair : sign | (x != x ? 0x7eu : 0x7cu));
}

__device__ __forceinline__ float load_e5m2(e5m2 bits) { return load_f16(static_cast<f16>(bits << 8)); }
#endif

#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 800
__device__ __forceinline__ bf16 bits_bf16(float x) {
    const uint32_t bits = bits_of_float(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<bf16>((bits >> 16 & 0x8000u) | 0x7fc0u);
    return static_cast<bf16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
#endif

#ifndef __CUDA_ARCH__

// The same in sums and shifts, for a host.
__device__ __forceinline__ float load_f16(f16 bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u) return float_of_bits(sign | 0x7f800000u | magnitude << 13);
    const float value = float_of_bits(magnitude << 13) * float_of_bits(0x77800000u);  // 2 to the 112
    return float_of_bits(sign | bits_of_float(value));
}

__device__ __forceinline__ f16 bits_f16(float x) {
    const uint32_t bits = bits_of_float(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<f16>(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return static_cast<f16>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {  // adding a half rounds at the last place of subnormals
        const float shifted = float_of_bits(magnitude) + 0.5f;
        return static_cast<f16>(sign | (bits_of_float(shifted) - 0x3f000000u));
    }
    return static_cast<f16>(sign | ((magnitude + 0xfffu + (magnitude >> 13 & 1u)) >> 13) - 0x1c000u);
}

#endif

}  // namespace autosched
