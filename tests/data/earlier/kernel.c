#include "matmul.h"

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
typedef float f32x16 __attribute__((vector_size(64)));

/* Elements of row-major arrays. */
#define A_at(i0, i1) A[(i0) * 32 + (i1)]
#define B_at(i0, i1) B[(i0) * 32 + (i1)]
#define C_at(i0, i1) C[(i0) * 32 + (i1)]

/* Inlined: a vector that is passed to a function, or returned, goes through memory. */
#define VECTOR_INLINE static inline __attribute__((always_inline, unused))

/* Clang does not align the stack for vectors that it keeps there: they would lie across lines, some across pages. */
#if defined __clang__ && defined __x86_64__
#define aligned_stack __attribute__((force_align_arg_pointer))
#else
#define aligned_stack
#endif

VECTOR_INLINE f32x16 splat_f32x16(float x) { return x - (f32x16){0}; }

VECTOR_INLINE f32x16 load_f32x16(const float *p) {
  f32x16 x;
  memcpy(&x, p, sizeof x);
  return x;
}

VECTOR_INLINE f32x16 fma_f32x16(f32x16 a, f32x16 b, f32x16 c) {
#if __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);
#elif defined __AVX512F__
  return _mm512_fmadd_ps(a, b, c);
#else
  return (f32x16){
    fmaf(a[0], b[0], c[0]), fmaf(a[1], b[1], c[1]), fmaf(a[2], b[2], c[2]), fmaf(a[3], b[3], c[3]),
    fmaf(a[4], b[4], c[4]), fmaf(a[5], b[5], c[5]), fmaf(a[6], b[6], c[6]), fmaf(a[7], b[7], c[7]),
    fmaf(a[8], b[8], c[8]), fmaf(a[9], b[9], c[9]), fmaf(a[10], b[10], c[10]), fmaf(a[11], b[11], c[11]),
    fmaf(a[12], b[12], c[12]), fmaf(a[13], b[13], c[13]), fmaf(a[14], b[14], c[14]), fmaf(a[15], b[15], c[15]),
  };
#endif
}

VECTOR_INLINE void store_f32x16(float *p, f32x16 x) { memcpy(p, &x, sizeof x); }

aligned_stack void matmul(const float *restrict A, const float *restrict B, float *restrict C) {
  f32x16 C_acc[1][2];
  for (ptrdiff_t i = 0; i < 32; ++i) {
    for (ptrdiff_t j = 0; j < 32; j += 32) {
      C_acc[0][0] = (f32x16){0};
      C_acc[0][1] = (f32x16){0};
      for (ptrdiff_t p = 0; p < 32; ++p) {
        C_acc[0][0] = fma_f32x16(splat_f32x16(A_at(i, p)), load_f32x16(&B_at(p, j)), C_acc[0][0]);
        C_acc[0][1] = fma_f32x16(splat_f32x16(A_at(i, p)), load_f32x16(&B_at(p, j + 16)), C_acc[0][1]);
      }
      store_f32x16(&C_at(i, j), C_acc[0][0]);
      store_f32x16(&C_at(i, j + 16), C_acc[0][1]);
    }
  }
}
