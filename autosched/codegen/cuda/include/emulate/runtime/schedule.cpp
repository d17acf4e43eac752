// Blocks one cluster after another, their threads in an order that the seed draws.
#include <cstdio>

#include "machine.h"

namespace emulate {

Machine machine;

static void life() {
  machine.kernel(machine.arguments);
  Fiber& me = *machine.current;
  end_thread(me);
  me.ended = true;
  hand_over(me.context, machine.scheduler);
  abort();
}

void release(Fiber& fiber) {
  fiber.knows.seen.set(fiber.number, fiber.time);
  ++fiber.time;
}

void wait_here(const std::string& what, uint32_t at) {
  Fiber& me = *machine.current;
  me.waits = what;
  me.waits_at = at;
  hand_over(me.context, machine.scheduler);
  me.waits.clear();
}

void wake(Fiber* fiber) { machine.ready.push_back(fiber); }

void on_scheduler(void (*run)(void*), void* data) {
  machine.request = run;
  machine.request_data = data;
  hand_over(machine.current->context, machine.scheduler);
}

std::string name_of(uint32_t actor) {
  const auto [kind, owner] = machine.actors[actor];
  const char* part[] = {"", "a copy that was not waited for, of ", "a bulk store that was not waited for, of ",
                        "products that were not waited for, of warpgroup ", "a bulk copy that was not waited for"};
  char text[160];
  if (kind == kBulk) return part[kind];
  if (kind == kProducts) {
    snprintf(text, sizeof text, "%s%u", part[kind], owner);
    return text;
  }
  const Fiber& f = machine.fibers[owner];
  snprintf(text, sizeof text, "%sthread (%u, %u, %u)%s", part[kind], f.thread.x, f.thread.y, f.thread.z,
           machine.ranks > 1 ? (" of block " + std::to_string(f.block) + " of the cluster").c_str() : "");
  return text;
}

void fail(const char* what, const std::string& detail, uint32_t at, const Found* found) {
  Violation& v = machine.violation;
  v.any = true;
  v.what = what;
  v.detail = detail;
  v.at = at;
  v.other_at = 0;
  v.other.clear();
  v.block = v.thread = {0, 0, 0};
  if (machine.current) {
    v.block = machine.current->block_index;
    v.thread = machine.current->thread;
  }
  if (found && found->fault != Fault::kUninitialised) {
    v.other = found->fault == Fault::kOtherBlock ? "another block" : name_of(found->other);
    v.other_at = found->other_at;
  }
  if (machine.current) hand_over(machine.current->context, machine.scheduler);
  abort();
}

static void start_cluster(Index first) {
  Machine& m = machine;
  const unsigned total = m.threads * m.ranks;
  m.shadow.new_cluster();
  m.meetings.clear();
  m.barriers.clear();
  m.landing.clear();
  m.actors.clear();
  m.holds = false;
  m.fibers.assign(total, Fiber());
  m.held.assign(total, {});
  m.products.assign((total + 127) / 128 + m.ranks, Engine());
  m.ready.clear();
  memset(m.arena, 0xff, m.arena_step * m.ranks);
  if (m.fixed.bytes) memset(reinterpret_cast<void*>(m.fixed.base), 0xff, m.fixed.bytes);
  for (Region& region : m.shared) {
    region.forget();
    region.track();
  }
  if (m.fixed.bytes) {
    m.fixed.forget();
    m.fixed.track();
  }
  for (unsigned n = 0; n < total; ++n) {
    Fiber& f = m.fibers[n];
    f.number = n;
    f.block = n / m.threads;
    const unsigned t = n % m.threads;
    f.thread = {t % m.block.x, t / m.block.x % m.block.y, t / m.block.x / m.block.y};
    f.block_index = {first.x + f.block % m.cluster.x, first.y + f.block / m.cluster.x % m.cluster.y,
                     first.z + f.block / m.cluster.x / m.cluster.y};
    m.new_actor(kThread, n);
    memset(m.stacks.low(n) + kStack - kPoisoned, 0xff, kPoisoned);
    prepare(f.context, m.stacks.low(n), life);
    m.ready.push_back(&f);
  }
}

static std::string stuck() {
  // The waiting threads, by what they wait for: `threads 0 to 31 and 64 wait at a barrier of the block`.
  std::string text;
  std::map<std::pair<std::string, uint32_t>, std::vector<unsigned>> by;
  unsigned ended = 0;
  for (Fiber& f : machine.fibers)
    if (f.ended)
      ++ended;
    else
      by[{f.waits, f.waits_at}].push_back(f.number);
  for (auto& [key, who] : by) {
    text += text.empty() ? "" : "; ";
    text += std::to_string(who.size()) + " threads (first " + std::to_string(who.front()) + ") wait for " + key.first;
  }
  if (ended) text += "; " + std::to_string(ended) + " have ended";
  return text;
}

static bool run_cluster(Index first) {
  Machine& m = machine;
  start_cluster(first);
  const bool shuffled = m.coin();
  for (;;) {
    if (!m.landing.empty() && (m.ready.empty() || m.draw() % 8 == 0)) {
      m.current = nullptr;
      land_one();
      continue;
    }
    if (m.ready.empty()) break;
    size_t pick = shuffled ? m.draw() % m.ready.size() : m.ready.size() - 1;
    std::swap(m.ready[pick], m.ready.back());
    Fiber* next = m.ready.back();
    m.ready.pop_back();
    m.current = next;
    for (;;) {
      hand_over(m.scheduler, next->context);
      if (m.violation.any || !m.request) break;
      auto run = m.request;
      m.request = nullptr;
      run(m.request_data);
    }
    if (m.violation.any) return false;
  }
  for (Fiber& f : m.fibers)
    if (!f.ended) {
      m.current = nullptr;
      Violation& v = m.violation;
      v = {};
      v.any = true;
      v.what = "deadlock";
      v.detail = stuck();
      v.at = f.waits_at;
      v.block = f.block_index;
      v.thread = f.thread;
      return false;
    }
  return true;
}

}  // namespace emulate

using namespace emulate;

extern "C" {

Index emulate_thread() { return machine.current->thread; }
Index emulate_block() { return machine.current->block_index; }
Index emulate_block_size() { return machine.block; }
Index emulate_grid_size() { return machine.grid; }
unsigned emulate_rank() { return machine.current->block; }
void* emulate_shared_memory() { return machine.arena + machine.current->block * machine.arena_step; }

unsigned emulate_shared_address(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) - reinterpret_cast<uintptr_t>(emulate_shared_memory());
}

void emulate_trap(const char* what) { fail("trap", what, EMULATE_HERE); }

void emulate_reset() {
  Machine& m = machine;
  for (Region& region : m.regions) region.forget();
  m.regions.clear();
}

void emulate_add_region(void* base, size_t bytes, const char* name, int writable, int initialised) {
  Region region;
  region.base = reinterpret_cast<uintptr_t>(base);
  region.bytes = bytes;
  region.name = name;
  region.writable = writable;
  region.initialised = initialised;
  if (writable || !initialised) region.track();
  machine.regions.push_back(region);
}

void emulate_set_module(uintptr_t first, uintptr_t last, uintptr_t data_first, uintptr_t data_last, uintptr_t shared,
                        size_t shared_bytes) {
  Machine& m = machine;
  m.module_first = first;
  m.module_last = last;
  m.data_first = data_first;
  m.data_last = data_last;
  m.fixed.forget();
  m.fixed = {};
  m.fixed.base = shared;
  m.fixed.bytes = shared_bytes;
  m.fixed.name = "static shared memory";
  m.fixed.writable = m.fixed.shared = true;
}

void emulate_set_model(void (*model)(int, void*)) { machine.model = model; }

// Runs some blocks (clusters) of a grid, numbered x fastest; all of them where `chosen` is null. 0 where all is well.
int emulate_launch(void (*kernel)(void**), void** arguments, Index grid, Index block, Index cluster, size_t shared_bytes,
                   uint64_t seed, const uint64_t* chosen, uint64_t count) {
  Machine& m = machine;
  m.kernel = kernel;
  m.arguments = arguments;
  m.grid = grid;
  m.block = block;
  m.cluster = cluster;
  m.threads = block.x * block.y * block.z;
  m.ranks = cluster.x * cluster.y * cluster.z;
  m.random = seed;
  m.violation = {};
  m.request = nullptr;
  m.shadow.new_launch();
  m.stacks.reserve(m.threads * m.ranks);
  // Blocks of a cluster lie apart, so that running over the end of one is not a hit on the next.
  m.arena_bytes = shared_bytes;
  m.arena_step = ((shared_bytes + 1023) / 1024 + 4) * 1024;
  char* memory = static_cast<char*>(aligned_alloc(1024, m.arena_step * m.ranks));
  m.arena = memory;
  m.shared.assign(shared_bytes ? m.ranks : 0, Region());
  for (size_t r = 0; r < m.shared.size(); ++r) {
    m.shared[r].base = reinterpret_cast<uintptr_t>(memory + r * m.arena_step);
    m.shared[r].bytes = shared_bytes;
    m.shared[r].name = "shared memory";
    m.shared[r].writable = m.shared[r].shared = true;
  }
  const uint64_t across = grid.x / cluster.x, down = grid.y / cluster.y, deep = grid.z / cluster.z;
  const uint64_t all = across * down * deep;
  bool well = true;
  for (uint64_t n = 0; well && n < (chosen ? count : all); ++n) {
    const uint64_t c = chosen ? chosen[n] : n;
    well = run_cluster({unsigned(c % across) * cluster.x, unsigned(c / across % down) * cluster.y,
                        unsigned(c / across / down) * cluster.z});
  }
  for (Region& region : m.shared) region.forget();
  m.shared.clear();
  free(memory);
  m.current = nullptr;
  return well ? 0 : 1;
}

struct Report {
  const char *what, *detail, *other;
  uint32_t at, other_at;
  Index block, thread;
};

Report emulate_report() {
  const Violation& v = machine.violation;
  return {v.what.c_str(), v.detail.c_str(), v.other.c_str(), v.at, v.other_at, v.block, v.thread};
}
}
