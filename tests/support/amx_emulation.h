/* AMX's intrinsics on plain arrays, for machines without it: palette 1, rows of 64 bytes, up to 16 of them. Anything else
   is an abort, as is a tile that is used before it is configured, zeroed or loaded, or a product of tiles whose rows do not
   fit. Tiles are a thread's own. Include before the kernel. */
#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EMULATED_TILES = 8, EMULATED_ROWS = 16, EMULATED_BYTES = 64 };
static _Thread_local uint8_t emulated_tile[EMULATED_TILES][EMULATED_ROWS][EMULATED_BYTES];
static _Thread_local int emulated_on, emulated_held[EMULATED_TILES], emulated_rows[EMULATED_TILES];

__attribute__((unused)) static void emulated_fault(const char *what, int tile) {
  fprintf(stderr, "AMX emulation: %s (tile %d)\n", what, tile);
  abort();
}

static inline void emulated_use(int tile, int read) {
  if (!emulated_on) emulated_fault("not configured", tile);
  if (tile < 0 || tile >= EMULATED_TILES) emulated_fault("no such tile", tile);
  if (read && !emulated_held[tile]) emulated_fault("holds nothing", tile);
}

static inline void emulated_configure(const void *from) {
  const uint8_t *c = (const uint8_t *)from;
  if (c[0] != 1 || c[1] != 0) emulated_fault("not palette 1 from row 0", -1);
  for (int i = 2; i < 64; ++i) {
    const int word = i >= 16 && i < 32, rows = i >= 48 && i < 56;
    const uint8_t wanted = word && i % 2 == 0 ? EMULATED_BYTES : 0;
    if (rows ? c[i] == 0 || c[i] > EMULATED_ROWS : c[i] != wanted) emulated_fault("not such a tile", i);
    if (rows) emulated_rows[i - 48] = c[i];
  }
  emulated_on = 1;
  memset(emulated_held, 0, sizeof emulated_held);
}

static inline void emulated_release(void) {
  if (!emulated_on) emulated_fault("released twice", -1);
  emulated_on = 0;
}

static inline void emulated_zero(int tile) {
  emulated_use(tile, 0);
  memset(emulated_tile[tile], 0, sizeof emulated_tile[tile]);
  emulated_held[tile] = 1;
}

static inline void emulated_load(int tile, const void *from, ptrdiff_t stride) {
  emulated_use(tile, 0);
  memset(emulated_tile[tile], 0, sizeof emulated_tile[tile]);
  for (int r = 0; r < emulated_rows[tile]; ++r)
    memcpy(emulated_tile[tile][r], (const char *)from + r * stride, EMULATED_BYTES);
  emulated_held[tile] = 1;
}

static inline void emulated_store(int tile, void *to, ptrdiff_t stride) {
  emulated_use(tile, 1);
  for (int r = 0; r < emulated_rows[tile]; ++r) memcpy((char *)to + r * stride, emulated_tile[tile][r], EMULATED_BYTES);
}

static inline void emulated_distinct(int c, int a, int b) {
  emulated_use(c, 1);
  emulated_use(a, 1);
  emulated_use(b, 1);
  if (c == a || c == b || a == b) emulated_fault("the same tile twice", c);
  if (emulated_rows[a] != emulated_rows[c]) emulated_fault("other rows than its sums", a);
  if (emulated_rows[b] != EMULATED_ROWS) emulated_fault("not a row for every four bytes", b);
}

static inline void emulated_bytes(int c, int a, int b, int signed_a, int signed_b) {
  emulated_distinct(c, a, b);
  for (int m = 0; m < emulated_rows[c]; ++m)
    for (int k = 0; k < 16; ++k)
      for (int n = 0; n < 16; ++n) {
        uint32_t sum;
        memcpy(&sum, &emulated_tile[c][m][4 * n], 4);
        for (int i = 0; i < 4; ++i) {
          const uint8_t x = emulated_tile[a][m][4 * k + i], y = emulated_tile[b][k][4 * n + i];
          sum += (uint32_t)((signed_a ? (int8_t)x : x) * (signed_b ? (int8_t)y : y));
        }
        memcpy(&emulated_tile[c][m][4 * n], &sum, 4);
      }
}

static inline float emulated_bf16(const uint8_t *at) {
  uint16_t half;
  uint32_t bits;
  float x;
  memcpy(&half, at, 2);
  bits = (uint32_t)half << 16;
  if (!(bits & 0x7f800000u)) bits &= 0x80000000u; /* subnormals count as zero */
  memcpy(&x, &bits, 4);
  return x;
}

static inline void emulated_pairs(int c, int a, int b) {
  emulated_distinct(c, a, b);
  for (int m = 0; m < emulated_rows[c]; ++m)
    for (int n = 0; n < 16; ++n) {
      float sum, even = 0, odd = 0;
      for (int k = 0; k < 16; ++k) {
        even = fmaf(emulated_bf16(&emulated_tile[a][m][4 * k]), emulated_bf16(&emulated_tile[b][k][4 * n]), even);
        odd = fmaf(emulated_bf16(&emulated_tile[a][m][4 * k + 2]), emulated_bf16(&emulated_tile[b][k][4 * n + 2]), odd);
      }
      memcpy(&sum, &emulated_tile[c][m][4 * n], 4);
      sum += even + odd;
      memcpy(&emulated_tile[c][m][4 * n], &sum, 4);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbusd
#undef _tile_dpbuud
#undef _tile_dpbf16ps
#define _tile_loadconfig(from) emulated_configure(from)
#define _tile_release() emulated_release()
#define _tile_zero(tile) emulated_zero(tile)
#define _tile_loadd(tile, from, stride) emulated_load(tile, from, stride)
#define _tile_stored(tile, to, stride) emulated_store(tile, to, stride)
#define _tile_dpbssd(c, a, b) emulated_bytes(c, a, b, 1, 1)
#define _tile_dpbsud(c, a, b) emulated_bytes(c, a, b, 1, 0)
#define _tile_dpbusd(c, a, b) emulated_bytes(c, a, b, 0, 1)
#define _tile_dpbuud(c, a, b) emulated_bytes(c, a, b, 0, 0)
#define _tile_dpbf16ps(c, a, b) emulated_pairs(c, a, b)
