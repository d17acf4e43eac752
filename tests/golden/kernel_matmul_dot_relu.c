#include "dot_relu.h"

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#ifdef __cplusplus
#define restrict __restrict
#endif

/* Vectors of elements. */
typedef int32_t s32x16 __attribute__((vector_size(64)));
typedef int8_t s8x64 __attribute__((vector_size(64)));
typedef uint32_t u32x16 __attribute__((vector_size(64)));
typedef uint8_t u8x64 __attribute__((vector_size(64)));
typedef float f32x16 __attribute__((vector_size(64)));

/* Elements of row-major arrays. */
#define B_at(i0, i1) B[(i0) * 19 + (i1)]
#define B_packed_at(i0, i1, i2) B_packed[((i0) * 3 + (i1)) * 64 + (i2)]
#define A_at(i0, i1) A[(i0) * 10 + (i1)]
#define Y_at(i0, i1) Y[(i0) * 19 + (i1)]

/* Inlined: a vector that is passed to a function, or returned, goes through memory. */
#define VECTOR_INLINE static inline __attribute__((always_inline, unused))

/* Clang does not align the stack for vectors that it keeps there: they would lie across lines, some across pages. */
#if defined __clang__ && defined __x86_64__
#define aligned_stack __attribute__((force_align_arg_pointer))
#else
#define aligned_stack
#endif

VECTOR_INLINE s8x64 load_s8x64(const int8_t *p) {
  s8x64 x;
  memcpy(&x, p, sizeof x);
  return x;
}

/* p[0] to p[3] in every group of 4 elements. */
VECTOR_INLINE u8x64 repeat_4_u8x64(const uint8_t *p) {
  uint32_t group;
  memcpy(&group, p, sizeof group);
  return (u8x64)(group - (u32x16){0});
}

VECTOR_INLINE f32x16 splat_f32x16(float x) { return x - (f32x16){0}; }

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

VECTOR_INLINE f32x16 select_f32x16(s32x16 mask, f32x16 a, f32x16 b) {
#ifdef __clang__
  return (f32x16)((mask & (s32x16)a) | (~mask & (s32x16)b));
#else  /* GCC makes a blend of this, and several operations of the other */
  float x[16], y[16];
  memcpy(x, &a, sizeof x);
  memcpy(y, &b, sizeof y);
#pragma GCC unroll 1  /* unrolled by -O3 it is no blend any more */
  for (int e = 0; e < 16; ++e) x[e] = mask[e] ? x[e] : y[e];
  memcpy(&a, x, sizeof x);
  return a;
#endif
}

VECTOR_INLINE f32x16 greater_f32x16(f32x16 a, f32x16 b) {
#ifdef __AVX512F__
  return _mm512_max_ps(a, b);
#else
  return select_f32x16(a > b, a, b);
#endif
}

/* The first `count` elements (none where it is negative). */
VECTOR_INLINE void store_first_f32x16(float *p, ptrdiff_t count, f32x16 x) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_epi32(p, (__mmask16)(((uint64_t)1 << (count < 0 ? 0 : count > 16 ? 16 : count)) - 1), (__m512i)x);
#else
  memcpy(p, &x, (size_t)(count < 0 ? 0 : count > 16 ? 16 : count) * sizeof *p);
#endif
}

void dot_relu_prepare_B(const int8_t *restrict B, int8_t *restrict B_packed) {
  for (ptrdiff_t j = 0; j < 2; ++j) {
    for (ptrdiff_t p = 0; p < 3; ++p) {
      for (ptrdiff_t e = 0; e < 64; ++e)
        B_packed_at(j, p, e) = (p * 4 + e % 4 < 10 && j * 16 + e / 4 < 19) ? B_at(p * 4 + e % 4, j * 16 + e / 4) : 0;
    }
  }
}

aligned_stack void dot_relu(
    const uint8_t *restrict A,
    const float *restrict bias,
    float *restrict Y,
    const int8_t *restrict B_packed,
    float scale) {
  s32x16 acc[2];
  s8x64 b;
  u8x64 a[2];
  for (ptrdiff_t j = 0; j < 2; ++j) {
    for (ptrdiff_t i = 0; i < 5; i += 2) {
#pragma GCC unroll 2
      for (ptrdiff_t r = 0; r < 2; ++r) {
        acc[r] = (s32x16){0};
      }
      for (ptrdiff_t p = 0; p < 3; ++p) {
        b = load_s8x64(&B_packed_at(j, p, 0));
#pragma GCC unroll 2
        for (ptrdiff_t r = 0; r < 2; ++r) {
          {
            uint8_t lanes[4] = {0};
            for (ptrdiff_t e = 0; e < 4; ++e) if (i + r < 5 && p * 4 + e % 4 < 10) lanes[e] = A_at(i + r, p * 4 + e % 4);
            a[r] = repeat_4_u8x64(lanes);
          }
          acc[r] = (s32x16)_mm512_dpbusd_epi32((__m512i)acc[r], (__m512i)a[r], (__m512i)b);
        }
      }
#pragma GCC unroll 2
      for (ptrdiff_t r = 0; r < 2; ++r) {
        if (i + r < 5) {
          store_first_f32x16(&Y_at(i + r, j * 16), 19 - j * 16, greater_f32x16(((f32x16){0}), ((__builtin_convertvector(acc[r], f32x16) * splat_f32x16(scale)) + load_first_f32x16(&bias[j * 16], 19 - j * 16))));
        }
      }
    }
  }
}
