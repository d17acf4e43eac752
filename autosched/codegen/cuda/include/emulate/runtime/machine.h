// The emulated GPU's state: one cluster of blocks at a time, its threads as fibers, and what they wait for.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "../api.h"
#include "clocks.h"
#include "fiber.h"
#include "shadow.h"

namespace emulate {

// Registers that must be left alone until a group of products has ended.
struct Span {
  uintptr_t first, last;
  uint32_t time;
};

// A piece of an asynchronous copy, read when it was asked for and not yet written.
struct Copy {
  char* to;
  unsigned bytes;
  char data[16];
};

struct Group {
  std::vector<Copy> late;
  uint32_t time = 0;  // on the engine's clock
  Knowledge before;   // products: what their threads knew
};

// Copies or products that one thread (or warpgroup) has under way, in groups.
struct Engine {
  int actor = -1;
  uint32_t time = 1;
  Group open;
  bool any = false;     // whether the open group holds something
  bool fenced = false;  // products: whether registers and memory were fenced since the last group
  std::deque<Group> groups;
  Knowledge before;
};

struct Fiber {
  Context context;
  unsigned number = 0;  // in the cluster: its actor
  unsigned block = 0;   // rank in the cluster
  Index thread, block_index;
  uint32_t time = 1;
  Knowledge knows;
  bool ended = false;
  std::string waits;    // for what, while it does
  uint32_t waits_at = 0;
  bool waits_at_barrier = false;
  Engine copies, stores;
  unsigned lane() const;
  unsigned warp() const;  // in the cluster
};

// Threads that come together: the last to come does `act` for all.
struct Meeting {
  const char* what = "";
  uint32_t at = 0;
  unsigned expected = 0;
  uint32_t mask = 0;
  std::vector<Fiber*> who;
  std::vector<void*> data;
  Knowledge knows;
  unsigned arrived = 0;
};

struct Barrier {
  unsigned arrivals = 0, pending = 0;
  int64_t bytes = 0;
  uint64_t phase = 0;
  Knowledge coming, past;  // of the phase under way, and of those that have ended
  int actor = -1;          // the engine whose copies signal it
  uint32_t time = 1;
  const Fiber* maker = nullptr;
  bool fenced = false;  // whether its maker has told TMA and other blocks of it
  std::vector<std::pair<Fiber*, unsigned>> waiting;
};

// A bulk copy under way to shared memory.
struct Landing {
  std::vector<Copy> late;
  Barrier* barrier;
  uint64_t bytes;
  uint32_t time;
};

struct Violation {
  bool any = false;
  std::string what, detail, owner;
  uint32_t at = 0, other_at = 0;
  Index block, thread;
  std::string other;
};

enum Actor : uint8_t { kThread, kCopies, kStores, kProducts, kBulk };

struct Machine {
  // launch
  Index grid, block, cluster;
  unsigned threads = 0, ranks = 1;  // threads of a block, blocks of a cluster
  void (*kernel)(void**) = nullptr;
  void** arguments = nullptr;
  uint64_t random = 0;
  // memory
  std::vector<Region> regions;  // global arrays, by base
  std::vector<Region> shared;   // by rank
  Region fixed;                 // static __shared__ variables
  uintptr_t module_first = 0, module_last = 0, data_first = 0, data_last = 0;
  char* arena = nullptr;  // dynamic shared memory of all ranks
  size_t arena_step = 0, arena_bytes = 0;
  Shadow shadow;
  Stacks stacks;
  // cluster
  std::vector<Fiber> fibers;
  std::vector<Fiber*> ready;
  Fiber* current = nullptr;
  Context scheduler;
  std::map<std::tuple<int, unsigned, unsigned>, Meeting> meetings;  // scope, its number, barrier or mask
  std::unordered_map<uintptr_t, Barrier> barriers;
  std::vector<Landing> landing;
  std::vector<Engine> products;  // by warpgroup
  std::vector<std::pair<Actor, unsigned>> actors;
  std::vector<std::vector<Span>> held;  // by fiber: registers of products under way
  bool holds = false;
  Violation violation;
  void (*request)(void*) = nullptr;  // what the scheduler is asked to run on its own stack
  void* request_data = nullptr;
  void (*model)(int, void*) = nullptr;

  uint64_t draw() {  // splitmix64
    uint64_t z = (random += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  bool coin() { return draw() & 1; }

  uint32_t new_actor(Actor kind, unsigned owner) {
    actors.emplace_back(kind, owner);
    return actors.size() - 1;
  }
};

extern Machine machine;

inline uint32_t code_at(const void* pc) { return reinterpret_cast<uintptr_t>(pc) - machine.module_first; }
#define EMULATE_HERE ::emulate::code_at(__builtin_return_address(0))

inline unsigned Fiber::lane() const { return (number % machine.threads) % 32; }
inline unsigned Fiber::warp() const {
  const unsigned warps = (machine.threads + 31) / 32;
  return block * warps + (number % machine.threads) / 32;
}

// -- the scheduler (schedule.cpp)
void wait_here(const std::string& what, uint32_t at);  // until `wake`
void wake(Fiber* fiber);
[[noreturn]] void fail(const char* what, const std::string& detail, uint32_t at, const Found* found = nullptr);
std::string name_of(uint32_t actor);
void on_scheduler(void (*run)(void*), void* data);
void release(Fiber& fiber);  // what it did so far gets a time of its own
void loaded(Fiber& fiber);   // the same, and what it has read has come

// -- accesses (accesses.cpp)
void touch(const void* address, size_t bytes, bool write, uint32_t at);  // by the current thread
void touch_as(const void* address, size_t bytes, const Access& access);
const Region* region_of(uintptr_t address);

// -- meetings (meetings.cpp)
using Act = void (*)(Meeting&);
void meet_lanes(unsigned mask, const char* what, void* data, Act act, bool orders, uint32_t at);
void meet_group(const char* what, void* data, Act act, uint32_t at);  // of 128 threads

// -- engines (copies.cpp, products.cpp)
bool land_one();
void end_thread(Fiber& fiber);

}  // namespace emulate
