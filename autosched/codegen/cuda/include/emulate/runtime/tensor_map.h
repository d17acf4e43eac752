// A tensor map as the emulator encodes it, and the box that one copy moves.
#pragma once
#include "machine.h"

namespace emulate {

struct alignas(64) TensorMap {
  char* base;
  uint64_t extents[5], strides[5];  // elements; bytes (the first: of an element)
  uint16_t box[5];
  uint8_t rank, swizzle_log;  // swizzle: 0, or log2 of its span in bytes
  uint16_t tag;               // says that this is a map
  int16_t lower[3], upper[3];  // of a walk over pixels (im2col mode): corners of the window's places
  uint16_t steps[3], walked;   // and how many dimensions are walked; 0: boxes
  uint16_t unused[3];
};
static_assert(sizeof(TensorMap) == 128, "as large as the driver's");
constexpr uint16_t kMapTag = 0x7a6d;

class Box {
 public:
  Box(const TensorMap& map, const int* at, int rank, uint32_t code) : map_(map), at_(at) {
    if (map.tag != kMapTag) fail("tensor map", "the argument is no tensor map", code);
    if (map.rank + map.walked != rank) fail("tensor map", "a map of " + std::to_string(map.rank) + " dimensions", code);
    if (map.walked && map.walked != map.rank - 2) fail("tensor map", "a walk along some dimensions only", code);
    for (int d = 0; d < map.walked; ++d) {
      const int begins = at[d + 1] - map.lower[d], last = int(map.extents[d + 1]) - 1 + map.upper[d] - map.lower[d];
      if (begins < 0 || begins > last || begins % map.steps[d]) fail("tensor map", "pixels that begin at no place of the walk", code);
      const int most = map.rank == 3 ? 65535 : map.rank == 4 ? 255 : 31;
      if (at[map.rank + d] < 0 || at[map.rank + d] > most) fail("tensor map", "a place outside the window", code);
    }
    const size_t inner = map.box[0] * map.strides[0];
    if (inner % 16) fail("tensor map", "a box whose rows are no whole 16 bytes", code);
    if (map.swizzle_log && inner > size_t(1) << map.swizzle_log) fail("tensor map", "a row of the box is longer than the swizzle", code);
    // No manual says so, but an H200 answers such a box with an illegal instruction.
    if (at[0] * int64_t(map.strides[0]) % 16) fail("tensor map", "a box begins inside 16 bytes of a row", code);
    if (reinterpret_cast<uintptr_t>(map.base) % 16) fail("tensor map", "the tensor does not lie on 16 bytes", code);
    for (int d = 1; d < map.rank; ++d)
      if (map.strides[d] % 16) fail("tensor map", "a stride is no multiple of 16 bytes", code);
  }

  // Calls `piece(shared, global, bytes)` for runs of at most 16 bytes; `global` is null outside the tensor.
  template <class Piece>
  void pieces(char* shared, Piece piece) const {
    const size_t element = map_.strides[0], row = map_.box[0] * element;
    size_t rows = 1;
    for (int d = 1; d < (map_.walked ? 2 : map_.rank); ++d) rows *= map_.box[d];
    const size_t chunk = 16 / element;
    for (size_t r = 0; r < rows; ++r) {
      char* global = map_.base;
      bool inside = true;
      int64_t place[5];
      map_.walked ? walk(r, place) : rectangle(r, place);
      for (int d = 1; d < map_.rank; ++d) {
        const int64_t c = place[d];
        inside &= c >= 0 && c < int64_t(map_.extents[d]);
        global += c * int64_t(map_.strides[d]);
      }
      for (size_t e = 0; e < map_.box[0]; e += chunk) {
        char* place = swizzled(shared + r * row + e * element);
        const int64_t c = int64_t(at_[0]) + e;
        const int64_t low = std::clamp<int64_t>(-c, 0, chunk), high = std::clamp<int64_t>(int64_t(map_.extents[0]) - c, 0, chunk);
        if (!inside || low >= high) {
          piece(place, static_cast<char*>(nullptr), 16);
          continue;
        }
        if (low) piece(place, static_cast<char*>(nullptr), low * element);
        piece(place + low * element, global + (c + low) * int64_t(element), (high - low) * element);
        if (high < int64_t(chunk)) piece(place + high * element, static_cast<char*>(nullptr), (chunk - high) * element);
      }
    }
  }

  // Chunks of 16 bytes change places within spans: by bits of the address in shared memory.
  char* swizzled(char* pointer) const {
    if (!map_.swizzle_log) return pointer;
    uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
    const uintptr_t mask = (uintptr_t(1) << (map_.swizzle_log - 4)) - 1;
    return reinterpret_cast<char*>(address ^ ((address >> 7 & mask) << 4));
  }

 private:
  // Where row `r` of a box lies.
  void rectangle(size_t r, int64_t* place) const {
    for (int d = 1; d < map_.rank; ++d) {
      place[d] = int64_t(at_[d]) + r % map_.box[d];
      r /= map_.box[d];
    }
  }

  // Where pixel `r` of a walk lies: the window's corner goes on from where it began, line by line, image by image.
  void walk(size_t r, int64_t* place) const {
    int64_t carry = r;
    for (int d = 1; d + 1 < map_.rank; ++d) {
      const int64_t step = map_.steps[d - 1], low = map_.lower[d - 1];
      const int64_t places = (int64_t(map_.extents[d]) - 1 + map_.upper[d - 1] - low) / step + 1;
      const int64_t number = (at_[d] - low) / step + carry;
      place[d] = low + number % places * step + at_[map_.rank + d - 1];
      carry = number / places;
    }
    place[map_.rank - 1] = at_[map_.rank - 1] + carry;
  }

  const TensorMap& map_;
  const int* at_;
};

}  // namespace emulate
