#include "gemm.h"

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#ifdef __cplusplus
#define restrict __restrict
#endif

/* Vectors of elements. */
typedef float f32x16 __attribute__((vector_size(64)));

/* Elements of row-major arrays. */
#define B_at(i0, i1) B[(i0) * 41 + (i1)]
#define A_at(i0, i1) A[(i0) * 7 + (i1)]
#define C_at(i0, i1) C[(i0) * 41 + (i1)]

/* Inlined: a vector that is passed to a function, or returned, goes through memory. */
#define VECTOR_INLINE static inline __attribute__((always_inline, unused))

/* Clang does not align the stack for vectors that it keeps there: they would lie across lines, some across pages. */
#if defined __clang__ && defined __x86_64__
#define aligned_stack __attribute__((force_align_arg_pointer))
#else
#define aligned_stack
#endif

/* The address may lie outside the array, so it is computed as an integer. */
static inline const void *prefetch_address(const void *base, ptrdiff_t bytes) {
  return (const void *)((uintptr_t)base + (uintptr_t)bytes);
}

/* The first `count` elements (none where it is negative), then zeros. */
VECTOR_INLINE f32x16 load_first_f32x16(const float *p, ptrdiff_t count) {
#if defined(__AVX512F__)
  return (f32x16)_mm512_maskz_loadu_epi32((__mmask16)(((uint64_t)1 << (count < 0 ? 0 : count > 16 ? 16 : count)) - 1), p);
#else
  f32x16 x = {0};
  memcpy(&x, p, (size_t)(count < 0 ? 0 : count > 16 ? 16 : count) * sizeof *p);
  return x;
#endif
}

VECTOR_INLINE f32x16 splat_f32x16(float x) { return x - (f32x16){0}; }

/* The first `count` elements (none where it is negative). */
VECTOR_INLINE void store_first_f32x16(float *p, ptrdiff_t count, f32x16 x) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_epi32(p, (__mmask16)(((uint64_t)1 << (count < 0 ? 0 : count > 16 ? 16 : count)) - 1), (__m512i)x);
#else
  memcpy(p, &x, (size_t)(count < 0 ? 0 : count > 16 ? 16 : count) * sizeof *p);
#endif
}

aligned_stack void gemm(const float *restrict A, const float *restrict B, float *restrict C) {
  __m512 acc[3][2];
  __m512 b[2];
  __m512 a[3];
  for (ptrdiff_t i = 0; i < 13; i += 3) {  /* rows */
    for (ptrdiff_t j = 0; j < 2; ++j) {  /* columns */
      /* one register tile */
#pragma GCC unroll 3
      for (ptrdiff_t r = 0; r < 3; ++r) {
#pragma GCC unroll 2
        for (ptrdiff_t v = 0; v < 2; ++v) {
          acc[r][v] = (__m512){0};
        }
      }
      for (ptrdiff_t p = 0; p < 7; ++p) {  /* the whole reduction */
#pragma GCC unroll 2
        for (ptrdiff_t v = 0; v < 2; ++v) {
          b[v] = load_first_f32x16(&B_at(p, j * 32 + v * 16), 41 - j * 32 - v * 16);
        }
#pragma GCC unroll 3
        for (ptrdiff_t r = 0; r < 3; ++r) {
          a[r] = splat_f32x16((i + r < 13) ? A_at(i + r, p) : 0);
#pragma GCC unroll 2
          for (ptrdiff_t v = 0; v < 2; ++v) {
            acc[r][v] = _mm512_fmadd_ps(a[r], b[v], acc[r][v]);
          }
        }
        __builtin_prefetch(prefetch_address(B, ((p + 4) * 41 + j * 32) * (ptrdiff_t)sizeof *B), 0, 3);
      }
#pragma GCC unroll 3
      for (ptrdiff_t r = 0; r < 3; ++r) {
#pragma GCC unroll 2
        for (ptrdiff_t v = 0; v < 2; ++v) {
          if (i + r < 13) store_first_f32x16(&C_at(i + r, j * 32 + v * 16), 41 - j * 32 - v * 16, acc[r][v]);
        }
      }
    }
  }
}
