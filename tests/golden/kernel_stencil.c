#include "stencil.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#ifdef __cplusplus
#define restrict __restrict
#endif

/* Vectors of elements. */
typedef float f32x8 __attribute__((vector_size(32)));

/* Elements of row-major arrays. */
#define W_at(i0, i1) W[(i0) * 21 + (i1)]
#define X_at(i0, i1) X[(i0) * 21 + (i1)]
#define Y_at(i0, i1) Y[(i0) * 21 + (i1)]

/* Inlined: a vector that is passed to a function, or returned, goes through memory. */
#define VECTOR_INLINE static inline __attribute__((always_inline, unused))

VECTOR_INLINE f32x8 load_f32x8(const float *p) {
  f32x8 x;
  memcpy(&x, p, sizeof x);
  return x;
}

/* The first `count` elements (none where it is negative). */
VECTOR_INLINE void store_first_f32x8(float *p, ptrdiff_t count, f32x8 x) {
#if defined(__AVX512VL__)
  _mm256_mask_storeu_epi32(p, (__mmask8)(((uint64_t)1 << (count < 0 ? 0 : count > 8 ? 8 : count)) - 1), (__m256i)x);
#elif defined(__AVX2__)
  const int n = (int)(count < 0 ? 0 : count > 8 ? 8 : count);
  const __m256i chosen = _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
  _mm256_maskstore_ps((float *)p, chosen, x);
#else
  memcpy(p, &x, (size_t)(count < 0 ? 0 : count > 8 ? 8 : count) * sizeof *p);
#endif
}

void stencil(const float *restrict X, float *restrict Y, void *restrict workspace) {
  float *const W = (float *)((char *)workspace + 0);
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(2)
#endif
  for (ptrdiff_t i = 0; i < 21; ++i) {
    for (ptrdiff_t j = 0; j < 21; ++j) {
      W_at(j, i) = X_at(i, j);
    }
  }
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(2)
#endif
  for (ptrdiff_t i = 0; i < 21; ++i) {
    f32x8 sum;
    for (ptrdiff_t j = 0; j < 3; ++j) {
      {
        float lanes[8] = {0};
        for (ptrdiff_t e = 0; e < 8; ++e) {
          if (j * 8 + e < 21) {
            lanes[e] = ((j * 8 + e > 0) ? W_at(j * 8 + e - 1, i) : 0.0f) * 0.5f + ((j * 8 + e + 1 < 21) ? W_at(j * 8 + e + 1, i) : 0.0f) * 0.5f;
          }
        }
        sum = load_f32x8(lanes);
      }
      store_first_f32x8(&Y_at(i, j * 8), 21 - j * 8, sum);
    }
  }
}
