// Every load and store of the kernel, as the compiler's thread sanitizer reports them, checked and remembered.
#include <algorithm>
#include <cstdio>

#include "machine.h"

namespace emulate {

static Region* find(uintptr_t address) {
  Machine& m = machine;
  if (m.arena) {
    const uintptr_t offset = address - reinterpret_cast<uintptr_t>(m.arena);
    if (!m.shared.empty() && offset < m.arena_step * m.ranks) {
      Region& region = m.shared[offset / m.arena_step];
      return address - region.base < region.bytes ? &region : nullptr;
    }
  }
  static size_t last = 0;
  if (last < m.regions.size() && address - m.regions[last].base < m.regions[last].bytes) return &m.regions[last];
  for (size_t i = 0; i < m.regions.size(); ++i)
    if (address - m.regions[i].base < m.regions[i].bytes) {
      last = i;
      return &m.regions[i];
    }
  if (address - m.fixed.base < m.fixed.bytes) return &m.fixed;
  return nullptr;
}

const Region* region_of(uintptr_t address) { return find(address); }

static std::string near(uintptr_t address) {
  // `8 bytes past the end of A (4096 bytes)`
  const Region* best = nullptr;
  uintptr_t distance = ~uintptr_t(0);
  auto look = [&](const Region& region) {
    const uintptr_t end = region.base + region.bytes;
    const uintptr_t d = address >= end ? address - end : region.base - address;
    if (d < distance) distance = d, best = &region;
  };
  for (const Region& region : machine.regions) look(region);
  for (const Region& region : machine.shared) look(region);
  if (machine.fixed.bytes) look(machine.fixed);
  char text[200];
  if (!best || distance > (64 << 20)) {
    snprintf(text, sizeof text, "address %#lx is in no array", static_cast<unsigned long>(address));
  } else {
    const bool past = address >= best->base + best->bytes;
    snprintf(text, sizeof text, "%lu bytes %s of %s (%lu bytes)", static_cast<unsigned long>(distance),
             past ? "past the end" : "before the start", best->name, static_cast<unsigned long>(best->bytes));
  }
  return text;
}

static std::string place(const Region& region, uintptr_t address) {
  return std::string(region.name) + " + " + std::to_string(address - region.base);
}

void touch_as(const void* pointer, size_t bytes, const Access& access) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  Region* region = find(address);
  if (!region || address - region->base + bytes > region->bytes)
    fail("out of bounds", (access.write ? "a write, " : "a read, ") + near(address + (region ? bytes : 0)), access.at);
  if (address % std::min<size_t>(bytes, 16) && (bytes & (bytes - 1)) == 0)
    fail("misaligned", std::to_string(bytes) + " bytes at " + place(*region, address), access.at);
  if (access.write && !region->writable) fail("write to an input", place(*region, address), access.at);
  if (!region->cells) return;
  const Found found = machine.shadow.touch(*region, address - region->base, bytes, access);
  if (found.fault == Fault::kNone) return;
  const char* names[] = {"", "uninitialised read", "race", "race between blocks", "missing proxy fence"};
  std::string detail = (access.write ? "a write of " : "a read of ") + place(*region, address + found.byte);
  if (found.fault != Fault::kUninitialised) detail += found.other_writes ? " after a write" : " after a read";
  fail(names[static_cast<int>(found.fault)], detail, access.at, &found);
}

void touch(const void* pointer, size_t bytes, bool write, uint32_t at) {
  Machine& m = machine;
  Fiber* me = m.current;
  if (!me) return;
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (m.stacks.holds(address)) {
    const size_t owner = (address - reinterpret_cast<uintptr_t>(m.stacks.base)) / kStack;
    if (owner != me->number) fail("out of bounds", "another thread's registers", at);
    if (m.holds)
      for (const Span& span : m.held[owner])
        if (address < span.last && address + bytes > span.first)
          fail("register in use", "an accumulator of products that were not waited for", at);
    return;
  }
  if (address - m.data_first < m.data_last - m.data_first && address - m.fixed.base >= m.fixed.bytes) {
    if (write) fail("out of bounds", "a write to constants", at);
    return;
  }
  me->knows.seen.set(me->number, me->time);
  touch_as(pointer, bytes, {me->number, me->time, &me->knows, write, false, at});
}

}  // namespace emulate

using emulate::touch;

extern "C" {

#define EMULATE_SIZE(n)                                                                      \
  void __tsan_read##n(void* p) { touch(p, n, false, EMULATE_HERE); }                         \
  void __tsan_write##n(void* p) { touch(p, n, true, EMULATE_HERE); }                         \
  void __tsan_unaligned_read##n(void* p) { touch(p, n, false, EMULATE_HERE); }               \
  void __tsan_unaligned_write##n(void* p) { touch(p, n, true, EMULATE_HERE); }               \
  void __tsan_volatile_read##n(void* p) { touch(p, n, false, EMULATE_HERE); }                \
  void __tsan_volatile_write##n(void* p) { touch(p, n, true, EMULATE_HERE); }
EMULATE_SIZE(1)
EMULATE_SIZE(2)
EMULATE_SIZE(4)
EMULATE_SIZE(8)
EMULATE_SIZE(16)
#undef EMULATE_SIZE

void __tsan_read_range(void* p, unsigned long n) { touch(p, n, false, EMULATE_HERE); }
void __tsan_write_range(void* p, unsigned long n) { touch(p, n, true, EMULATE_HERE); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}

// What the compiler makes of larger copies in a kernel: modules are linked so that these are called.
void* __wrap_memcpy(void* to, const void* from, size_t n) {
  touch(from, n, false, EMULATE_HERE);
  touch(to, n, true, EMULATE_HERE);
  return memcpy(to, from, n);
}

void* __wrap_memset(void* to, int value, size_t n) {
  touch(to, n, true, EMULATE_HERE);
  return memset(to, value, n);
}

void emulate_atomic(void* address, int bytes) { touch(address, bytes, false, EMULATE_HERE); }
}
