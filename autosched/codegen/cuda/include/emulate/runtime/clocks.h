// Vector clocks: what an actor knows to have happened. An actor is a thread, or an engine that works beside threads (one
// for each thread's copies, each warpgroup's products, each barrier's bulk copies).
#pragma once
#include <cstdint>
#include <vector>

namespace emulate {

struct Clock {
  std::vector<uint32_t> at;

  uint32_t of(uint32_t actor) const { return actor < at.size() ? at[actor] : 0; }

  void set(uint32_t actor, uint32_t time) {
    if (actor >= at.size()) at.resize(actor + 1);
    at[actor] = time;
  }

  void raise(uint32_t actor, uint32_t time) { set(actor, of(actor) < time ? time : of(actor)); }

  void join(const Clock& other) {
    if (other.at.size() > at.size()) at.resize(other.at.size());
    const size_t n = other.at.size();
    uint32_t* mine = at.data();
    const uint32_t* theirs = other.at.data();
    for (size_t i = 0; i < n; ++i) mine[i] = mine[i] < theirs[i] ? theirs[i] : mine[i];
  }
};

// What an actor knows, which of it the asynchronous proxy may rely on (what a proxy fence has followed), and until when
// loads have brought what they read: an arrival overtakes loads that are on their way, unless a fence, a barrier of the
// block or a product that used them and has ended stands between.
struct Knowledge {
  Clock seen, fenced, loaded;

  void join(const Knowledge& other) {
    seen.join(other.seen);
    fenced.join(other.fenced);
    loaded.join(other.loaded);
  }
};

}  // namespace emulate
