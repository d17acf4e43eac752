/*
 * gemm: C = A B.
 *
 *   def gemm(A: f32[m, k], B: f32[k, n], C: f32[m, n], *, m=1, n=1, k=1):
 *       """C = A B."""
 *       for i, j in grid(m, n):
 *           C[i, j] = 0
 *           for p in range(k):
 *               C[i, j] = fma(A[i, p], B[p, j], C[i, j])
 *
 * Schedule:
 *   tile = 3x2, threads = 1
 *
 * Instructions: x86/vfmadd.f32.zmm.
 *
 * Build: -std=gnu11 -O2 -ffp-contract=off -mavx512f
 */
#ifndef GEMM_H_INCLUDED
#define GEMM_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define restrict __restrict
extern "C" {
#endif

/* Sizes that the code was made for. */
enum { GEMM_M = 13, GEMM_N = 41, GEMM_K = 7 };

/*
 * A: f32[13][7], read
 * B: f32[7][41], read
 * C: f32[13][41], written
 * Arrays are row-major, must not overlap, and need no alignment beyond that of their elements.
 */
void gemm(const float *restrict A, const float *restrict B, float *restrict C);

#ifdef __cplusplus
}
#undef restrict
#endif

#endif
