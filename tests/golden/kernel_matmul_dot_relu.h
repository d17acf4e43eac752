/*
 * dot_relu: Y = max(scale * A B + bias, 0).
 *
 *   def dot_relu(A: u8[m, k], B: const[s8[k, n]], bias: f32[n], scale: f32, Y: f32[m, n], *, m=1, n=1, k=1):
 *       """Y = max(scale * A B + bias, 0)."""
 *       C: s32[m, n]
 *       for i, j in grid(m, n):
 *           C[i, j] = 0
 *           for p in range(k):
 *               C[i, j] += s32(A[i, p]) * s32(B[p, j])
 *       for i, j in grid(m, n):
 *           Y[i, j] = max(f32(C[i, j]) * scale + bias[j], 0)
 *
 * Instructions: x86/vpdpbusd.zmm.
 *
 * Build: -std=gnu11 -O2 -ffp-contract=off -mavx512vnni -mavx512f
 */
#ifndef DOT_RELU_H_INCLUDED
#define DOT_RELU_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define restrict __restrict
extern "C" {
#endif

/* Sizes that the code was made for. */
enum { DOT_RELU_M = 5, DOT_RELU_N = 19, DOT_RELU_K = 10 };

/* Memory that the caller provides: as malloc returns it; aligned to 64 bytes it is fastest. */
enum { DOT_RELU_B_PACKED_BYTES = 384 };

/* Lay out B as B_packed, once, before any call of dot_relu. */
void dot_relu_prepare_B(const int8_t *restrict B, int8_t *restrict B_packed);

/*
 * A: u8[5][10], read
 * bias: f32[19], read
 * Y: f32[5][19], written
 * B_packed: s8[2][3][64], as filled by dot_relu_prepare_B
 * scale: f32, by value, behind the arrays
 * Arrays are row-major, must not overlap, and need no alignment beyond that of their elements.
 */
void dot_relu(
    const uint8_t *restrict A,
    const float *restrict bias,
    float *restrict Y,
    const int8_t *restrict B_packed,
    float scale);

#ifdef __cplusplus
}
#undef restrict
#endif

#endif
