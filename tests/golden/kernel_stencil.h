/*
 * stencil: The mean of the neighbours that exist, in the order left, right.
 *
 *   def stencil(X: f32[n, n], Y: f32[n, n], *, n=1):
 *       """The mean of the neighbours that exist, in the order left, right."""
 *       for i, j in grid(n, n):
 *           Y[i, j] = (X[i, j - 1] if j > 0 else f32(0)) * 0.5 + (X[i, j + 1] if j + 1 < n else f32(0)) * 0.5
 *
 * Build: -std=gnu11 -O2 -ffp-contract=off -fno-tree-slp-vectorize -fopenmp (2 threads)
 */
#ifndef STENCIL_H_INCLUDED
#define STENCIL_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define restrict __restrict
extern "C" {
#endif

/* Sizes that the code was made for. */
enum { STENCIL_N = 21 };

/* Memory that the caller provides: as malloc returns it; aligned to 64 bytes it is fastest. */
enum { STENCIL_WORKSPACE_BYTES = 1792 };

/*
 * X: f32[21][21], read
 * Y: f32[21][21], written
 * workspace: STENCIL_WORKSPACE_BYTES bytes; its contents do not matter
 * Arrays are row-major, must not overlap, and need no alignment beyond that of their elements.
 */
void stencil(const float *restrict X, float *restrict Y, void *restrict workspace);

#ifdef __cplusplus
}
#undef restrict
#endif

#endif
