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
  uint16_t unused[13];
};
static_assert(sizeof(TensorMap) == 128, "as large as the driver's");
constexpr uint16_t kMapTag = 0x7a6d;

class Box {
 public:
  Box(const TensorMap& map, const int* at, int rank, uint32_t code) : map_(map), at_(at) {
    if (map.tag != kMapTag) fail("tensor map", "the argument is no tensor map", code);
    if (map.rank != rank) fail("tensor map", "a map of " + std::to_string(map.rank) + " dimensions", code);
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
    for (int d = 1; d < map_.rank; ++d) rows *= map_.box[d];
    const size_t chunk = 16 / element;
    for (size_t r = 0; r < rows; ++r) {
      char* global = map_.base;
      bool inside = true;
      size_t rest = r;
      for (int d = 1; d < map_.rank; ++d) {
        const int64_t c = int64_t(at_[d]) + rest % map_.box[d];
        rest /= map_.box[d];
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
  const TensorMap& map_;
  const int* at_;
};

}  // namespace emulate
