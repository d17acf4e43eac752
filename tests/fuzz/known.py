"""Pairs that once were matched wrongly, and why."""

from __future__ import annotations

from .pairs import Pair

KNOWN = {
    "a fill relied on an initial value that the program does not write where a bound of spatial loops fails": Pair(
        """def m(a: u8[3, 2, 3], b: s8[2, 3], c: s32[3, 3]):
 for i in range(3):
  for j in range(3):
   for k in range(2):
    c[i, j] = min(c[i, j], abs(s32(a[i, k, j]) - s32(b[k, j])))
""",
        "{accumulate: exact}",
        """def f(A: u8[3, 4, 3], B: s8[4, 3], C: s32[3, 3]):
 for p in range(3):
  for q in range(p, 3):
   C[p, q] = 0
   for r in range(4):
    C[p, q] = min(C[p, q], abs(s32(A[p, r, q]) - s32(B[r, q])))
""",
        "reassociated",
    ),
    "a guard was not seen to depend on the axes of a choice in it": Pair(
        """def m(a: u8[5], b: s16[3, 4], c: s32[3, 3]):
 for i in range(3):
  for j in range(3):
   for k in range(4):
    c[i, j] += (s32(a[i + j]) if a[i + j] > 0 else 0) * s32(b[j, k])
""",
        "{accumulate: exact}",
        """def f(A: u8[5], B: s16[10], C: s32[3, 3]):
 for p in range(3):
  for q in range(3):
   C[q, p] = 7
   for s in range(2):
    for r in range(5):
     x = A[p + q] if q == s else 0
     y = B[r * 2 + s + q - 1] if 0 <= r * 2 + s + q - 1 < 10 else 0
     C[q, p] += ((s32(x) if x > 0 else 0) * s32(y) if r == q else 0)
""",
        "reassociated",
    ),
    "a zero point was not seen to depend on the axis of a choice in it": Pair(
        """def m(a: s8[4], b: s8[4], c: s32[1]):
 for i in range(4):
  c[0] += s32(a[i]) * s32(b[i])
""",
        "{accumulate: exact}",
        """def f(A: s8[3, 8], B: s8[8, 2], S: s32[3, 2], C: s32[3, 2]):
 for p in range(3):
  for q in range(2):
   C[p, q] = 0
   for r in range(8):
    C[p, q] += (s32(A[p, r]) - (S[p, 0] if r < 4 else S[p, 1])) * s32(B[r, q])
""",
        "reassociated",
    ),
    "parts of a sum left an axis in the condition of a choice": Pair(
        """def m(a: s4[4, 2], b: s16[4], c: s16[4]):
 for i in range(4):
  c[i] = 0
  for k in range(2):
   c[i] += s16(popcount(u8(a[i, k]) ^ u8(b[i])))
""",
        "{}",
        """def f(C: s16[3, 3], A: s4[3, 4, 3], B: s16[3]):
 for r in range(3):
  for p in range(3):
   C[r, p] = 0
   for q in range(4):
    C[r, p] += s16(popcount(u8(A[r, q, p] if (r + q) % 2 == 0 else 0) ^ u8(B[p])))
""",
        "reassociated",
    ),
}
