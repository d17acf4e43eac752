#include "dot_relu.h"

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Vectors of elements. */
typedef int32_t s32x16 __attribute__((vector_size(64)));
typedef int8_t s8x64 __attribute__((vector_size(64)));
typedef uint32_t u32x16 __attribute__((vector_size(64)));
typedef uint8_t u8x64 __attribute__((vector_size(64)));

/* Elements of row-major arrays. */
#define B_at(i0, i1) B[(i0) * 19 + (i1)]
#define B_packed_at(i0, i1, i2) B_packed[((i0) * 3 + (i1)) * 64 + (i2)]
#define A_at(i0, i1) A[(i0) * 10 + (i1)]
#define Y_at(i0, i1) Y[(i0) * 19 + (i1)]

static inline float max_f32(float a, float b) { return a > b || a != a ? a : b; }  /* NaN wins */

static inline ptrdiff_t min_index(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

static inline s8x64 load_s8x64(const int8_t *p) {
  s8x64 x;
  memcpy(&x, p, sizeof x);
  return x;
}

/* p[0] to p[3] in every group of 4 elements. */
static inline u8x64 repeat_4_u8x64(const uint8_t *p) {
  uint32_t group;
  memcpy(&group, p, sizeof group);
  return (u8x64)(group - (u32x16){0});
}

void dot_relu_prepare_B(const int8_t *restrict B, int8_t *restrict B_packed) {
  for (ptrdiff_t j = 0; j < 2; ++j) {
    for (ptrdiff_t p = 0; p < 3; ++p) {
      for (ptrdiff_t e = 0; e < 64; ++e)
        B_packed_at(j, p, e) = (p * 4 + e % 4 < 10 && j * 16 + e / 4 < 19) ? B_at(p * 4 + e % 4, j * 16 + e / 4) : 0;
    }
  }
}

void dot_relu(
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
          const s32x16 acc_lanes = acc[r];
          for (ptrdiff_t e = 0; e < min_index(19 - j * 16, 16); ++e)
            Y_at(i + r, j * 16 + e) = max_f32((float)acc_lanes[e] * scale + bias[j * 16 + e], 0.0f);
        }
      }
    }
  }
}
