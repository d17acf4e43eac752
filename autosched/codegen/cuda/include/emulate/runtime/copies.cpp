// Copies that run beside the threads: cp.async groups, bulk copies of tensor boxes, and the barriers they signal.
//
// What a copy reads and writes counts as touched when it is asked for, by an actor of its own, which nobody knows of until
// it has been waited for; the bytes arrive then or now, as the seed says.
#include <cstdio>

#include "machine.h"
#include "tensor_map.h"

namespace emulate {

static void put(const Copy& copy) { memcpy(copy.to, copy.data, copy.bytes); }

static void finish(Group& group) {
  for (const Copy& copy : group.late) put(copy);
  group.late.clear();
}

static int actor_of(Engine& engine, Actor kind, unsigned owner) {
  if (engine.actor < 0) engine.actor = machine.new_actor(kind, owner);
  return engine.actor;
}

static void self_known(Fiber& me) { me.knows.seen.set(me.number, me.time); }

void end_thread(Fiber& me) {
  if (me.copies.any || !me.copies.groups.empty()) fail("unfinished", "a thread ends with copies that it did not wait for", 0);
  if (me.stores.any || !me.stores.groups.empty()) fail("unfinished", "a thread ends with bulk stores that it did not wait for", 0);
  if (!machine.held[me.number].empty()) fail("unfinished", "a thread ends with products that it did not wait for", 0);
}

// -- barriers

static Barrier& barrier_at(void* address, uint32_t at) {
  auto found = machine.barriers.find(reinterpret_cast<uintptr_t>(address));
  if (found == machine.barriers.end()) fail("uninitialised read", "a barrier that was not initialised", at);
  touch(address, 8, false, at);
  return found->second;
}

static void pass(Barrier& barrier) {
  if (barrier.pending || barrier.bytes) return;
  ++barrier.phase;
  barrier.pending = barrier.arrivals;
  barrier.past.join(barrier.coming);
  barrier.coming = {};
  auto waiting = std::move(barrier.waiting);
  barrier.waiting.clear();
  for (auto& [fiber, parity] : waiting) {
    if ((barrier.phase & 1) == parity) {
      barrier.waiting.emplace_back(fiber, parity);
      continue;
    }
    fiber->knows.join(barrier.past);
    wake(fiber);
  }
}

static void arrive(Barrier& barrier, uint32_t at) {
  Fiber& me = *machine.current;
  if (!barrier.pending) fail("barrier", "more arrivals than the barrier was made for", at);
  release(me);
  barrier.coming.join(me.knows);
  --barrier.pending;
}

static char* in_rank(void* pointer, unsigned rank) {
  Machine& m = machine;
  const size_t offset = static_cast<char*>(pointer) - m.arena;
  return m.arena + offset % m.arena_step + rank * m.arena_step;
}

bool land_one() {
  Machine& m = machine;
  if (m.landing.empty()) return false;
  const size_t pick = m.draw() % m.landing.size();
  Landing landing = std::move(m.landing[pick]);
  m.landing.erase(m.landing.begin() + pick);
  for (const Copy& copy : landing.late) put(copy);
  Barrier& barrier = *landing.barrier;
  barrier.bytes -= landing.bytes;
  barrier.coming.seen.set(barrier.actor, landing.time);
  barrier.coming.fenced.set(barrier.actor, landing.time);
  pass(barrier);
  return true;
}

}  // namespace emulate

using namespace emulate;

extern "C" {

void emulate_copy(void* to, const void* from, int bytes, int valid) {
  const uint32_t at = EMULATE_HERE;
  Fiber& me = *machine.current;
  Engine& engine = me.copies;
  const uint32_t actor = actor_of(engine, kCopies, me.number);
  if (bytes != 4 && bytes != 8 && bytes != 16) fail("copy", "cp.async moves 4, 8 or 16 bytes", at);
  if (reinterpret_cast<uintptr_t>(from) % bytes) fail("misaligned", "cp.async reads " + std::to_string(bytes) + " bytes", at);
  self_known(me);
  if (valid > 0) touch_as(from, valid, {actor, engine.time, &me.knows, false, false, at});
  touch_as(to, bytes, {actor, engine.time, &me.knows, true, false, at});
  Copy copy{static_cast<char*>(to), unsigned(bytes), {}};
  memcpy(copy.data, from, valid > 0 ? valid : 0);
  engine.any = true;
  if (machine.coin())
    put(copy);
  else
    engine.open.late.push_back(copy);
}

void emulate_copy_commit() {
  Engine& engine = machine.current->copies;
  engine.open.time = engine.time++;
  engine.groups.push_back(std::move(engine.open));
  engine.open = {};
  engine.any = false;
}

void emulate_copy_wait(int pending) {
  Fiber& me = *machine.current;
  Engine& engine = me.copies;
  while (engine.groups.size() > size_t(pending)) {
    finish(engine.groups.front());
    if (engine.actor >= 0) me.knows.seen.set(engine.actor, engine.groups.front().time);
    engine.groups.pop_front();
  }
}

void emulate_barrier_init(void* address, unsigned arrivals) {
  const uint32_t at = EMULATE_HERE;
  touch(address, 8, true, at);
  if (!arrivals) fail("barrier", "a barrier of no arrivals", at);
  Barrier& barrier = machine.barriers[reinterpret_cast<uintptr_t>(address)];
  barrier = {};
  barrier.arrivals = barrier.pending = arrivals;
  barrier.actor = machine.new_actor(kBulk, 0);
}

void emulate_barrier_arrive(void* address, int rank) {
  const uint32_t at = EMULATE_HERE;
  if (rank >= int(machine.ranks)) fail("out of bounds", "a barrier of a block that the cluster does not have", at);
  Barrier& barrier = barrier_at(rank < 0 ? address : in_rank(address, rank), at);
  arrive(barrier, at);
  pass(barrier);
}

void emulate_barrier_expect(void* address, unsigned bytes) {
  const uint32_t at = EMULATE_HERE;
  Barrier& barrier = barrier_at(address, at);
  barrier.bytes += bytes;
  arrive(barrier, at);
  pass(barrier);
}

void emulate_barrier_wait(void* address, unsigned parity) {
  const uint32_t at = EMULATE_HERE;
  Fiber& me = *machine.current;
  Barrier& barrier = barrier_at(address, at);
  if (parity > 1) fail("barrier", "a parity is 0 or 1", at);
  if ((barrier.phase & 1) != parity) {
    me.knows.join(barrier.past);
    return;
  }
  barrier.waiting.emplace_back(&me, parity);
  const unsigned long offset = static_cast<char*>(address) - machine.arena;
  wait_here("phase " + std::to_string(barrier.phase) + " of the barrier at byte " + std::to_string(offset % machine.arena_step) +
                " of shared memory",
            at);
}

void emulate_fence_barriers() {}

void emulate_fence_async() {
  Fiber& me = *machine.current;
  self_known(me);
  me.knows.fenced.join(me.knows.seen);
}

void emulate_fetch_box(unsigned blocks, void* to, const void* map, void* bar, const int* coordinates, int rank) {
  const uint32_t at = EMULATE_HERE;
  Fiber& me = *machine.current;
  self_known(me);
  const Box box(*static_cast<const TensorMap*>(map), coordinates, rank, at);
  for (unsigned block = 0; block < machine.ranks; ++block) {
    if (blocks ? !(blocks >> block & 1) : block != me.block) continue;
    char* destination = in_rank(to, block);
    void* address = in_rank(bar, block);
    auto found = machine.barriers.find(reinterpret_cast<uintptr_t>(address));
    if (found == machine.barriers.end()) fail("uninitialised read", "a barrier that was not initialised", at);
    Barrier& barrier = found->second;
    Landing landing{{}, &barrier, 0, barrier.time++};
    const bool early = machine.coin();
    if (reinterpret_cast<uintptr_t>(destination) % 128) fail("misaligned", "a box lies on 128 bytes of shared memory", at);
    const Access reads{uint32_t(barrier.actor), landing.time, &me.knows, false, true, at};
    const Access writes{uint32_t(barrier.actor), landing.time, &me.knows, true, true, at};
    box.pieces(destination, [&](char* place, const char* from, size_t bytes) {
      Copy copy{place, unsigned(bytes), {}};
      if (from) {
        touch_as(from, bytes, reads);
        memcpy(copy.data, from, bytes);
      }
      touch_as(place, bytes, writes);
      landing.bytes += bytes;
      if (early)
        put(copy);
      else
        landing.late.push_back(copy);
    });
    machine.landing.push_back(std::move(landing));
  }
}

void emulate_store_box(const void* map, const void* from, const int* coordinates, int rank) {
  const uint32_t at = EMULATE_HERE;
  Fiber& me = *machine.current;
  Engine& engine = me.stores;
  const uint32_t actor = actor_of(engine, kStores, me.number);
  self_known(me);
  const Box box(*static_cast<const TensorMap*>(map), coordinates, rank, at);
  if (reinterpret_cast<uintptr_t>(from) % 128) fail("misaligned", "a box lies on 128 bytes of shared memory", at);
  const Access reads{actor, engine.time, &me.knows, false, true, at}, writes{actor, engine.time, &me.knows, true, true, at};
  engine.any = true;
  box.pieces(static_cast<char*>(const_cast<void*>(from)), [&](char* place, const char* to, size_t bytes) {
    if (!to) return;
    touch_as(place, bytes, reads);
    touch_as(to, bytes, writes);
    Copy copy{const_cast<char*>(to), unsigned(bytes), {}};
    memcpy(copy.data, place, bytes);
    if (machine.coin())
      put(copy);
    else
      engine.open.late.push_back(copy);
  });
}

void emulate_commit_stores() {
  Engine& engine = machine.current->stores;
  engine.open.time = engine.time++;
  engine.groups.push_back(std::move(engine.open));
  engine.open = {};
  engine.any = false;
}

void emulate_wait_stores(int pending, bool) {
  Fiber& me = *machine.current;
  Engine& engine = me.stores;
  while (engine.groups.size() > size_t(pending)) {
    finish(engine.groups.front());
    if (engine.actor >= 0) me.knows.seen.set(engine.actor, engine.groups.front().time);
    engine.groups.pop_front();
  }
}
}
