// Threads that come together: barriers of a block, a cluster or a few warps, and what a warp or a warpgroup does as one.
#include <cstdio>

#include "machine.h"

namespace emulate {

enum Scope { kWarp, kNamed, kCluster, kGroup };

static std::string what_of(const char* what) { return std::string(what); }

// The current thread comes to a meeting of `expected` threads and goes on once all have come.
static void come(std::tuple<int, unsigned, unsigned> key, const char* what, unsigned expected, void* data, Act act, bool orders,
                 uint32_t at) {
  Machine& m = machine;
  Fiber& me = *m.current;
  Meeting& meeting = m.meetings[key];
  if (!meeting.arrived) {
    meeting.what = what;
    meeting.at = at;
    meeting.expected = expected;
  } else if (meeting.expected != expected) {
    fail("mismatched collective", what_of(what) + ": some threads say that " + std::to_string(meeting.expected) +
                                      " meet, others " + std::to_string(expected), at);
  }
  if (orders) {
    release(me);
    meeting.knows.join(me.knows);
  }
  meeting.who.push_back(&me);
  meeting.data.push_back(data);
  if (++meeting.arrived < meeting.expected) {
    wait_here(what, at);
    return;
  }
  Meeting whole = std::move(meeting);
  m.meetings.erase(key);
  if (orders)
    for (Fiber* f : whole.who) f->knows.join(whole.knows);
  if (act) act(whole);
  for (Fiber* f : whole.who)
    if (f != &me) wake(f);
}

// A warp's lanes do the same thing in the same place, or nothing good comes of it.
void meet_lanes(unsigned mask, const char* what, void* data, Act act, bool orders, uint32_t at) {
  Machine& m = machine;
  Fiber& me = *m.current;
  const unsigned lane = me.lane(), warp = me.warp();
  const unsigned first = me.number % m.threads - lane, there = m.threads - first;
  const unsigned lanes = there >= 32 ? 0xffffffffu : (1u << there) - 1;
  if (!(mask >> lane & 1)) fail("mismatched collective", what_of(what) + " by a lane that its mask leaves out", at);
  for (auto i = m.meetings.lower_bound({kWarp, warp, 0}); i != m.meetings.end(); ++i) {
    const auto& [scope, number, other_mask] = i->first;
    if (scope != kWarp || number != warp) break;
    const Meeting& other = i->second;
    if (!other.arrived || !(other_mask >> lane & 1)) continue;
    const bool same = other_mask == mask && std::string(other.what) == what && (other.at == at || orders);
    if (same) continue;
    Found found;
    found.fault = Fault::kRace;
    found.other = other.who.front()->number;
    found.other_at = other.at;
    fail("mismatched collective", what_of(what) + " while another lane of the warp is at " + other.what, at, &found);
  }
  come({kWarp, warp, mask}, what, __builtin_popcount(mask & lanes), data, act, orders, at);
}

void meet_group(const char* what, void* data, Act act, uint32_t at) {
  Machine& m = machine;
  Fiber& me = *m.current;
  const unsigned group = me.number / 128;
  if (m.threads % 128) fail("mismatched collective", what_of(what) + ": threads of a block make no whole warpgroups", at);
  auto i = m.meetings.find({kGroup, group, 0});
  if (i != m.meetings.end() && i->second.arrived && (i->second.at != at || std::string(i->second.what) != what)) {
    Found found;
    found.fault = Fault::kRace;
    found.other = i->second.who.front()->number;
    found.other_at = i->second.at;
    fail("mismatched collective", what_of(what) + " while another thread of the warpgroup is at " + i->second.what, at, &found);
  }
  come({kGroup, group, 0}, what, 128, data, act, false, at);
}

struct Shuffle {
  unsigned value, source, result;
};

static void shuffle(Meeting& meeting) {
  for (size_t i = 0; i < meeting.who.size(); ++i) {
    Shuffle& mine = *static_cast<Shuffle*>(meeting.data[i]);
    const Shuffle* from = nullptr;
    for (size_t j = 0; j < meeting.who.size(); ++j)
      if (meeting.who[j]->lane() == mine.source) from = static_cast<Shuffle*>(meeting.data[j]);
    if (!from) {
      machine.current = meeting.who[i];
      fail("mismatched collective", "a shuffle from lane " + std::to_string(mine.source) + ", which takes no part", meeting.at);
    }
    mine.result = from->value;
  }
}

static void ballot(Meeting& meeting) {
  unsigned bits = 0;
  for (size_t i = 0; i < meeting.who.size(); ++i)
    if (static_cast<Shuffle*>(meeting.data[i])->value) bits |= 1u << meeting.who[i]->lane();
  for (void* data : meeting.data) static_cast<Shuffle*>(data)->result = bits;
}

}  // namespace emulate

using namespace emulate;

extern "C" {

void emulate_meet_block() {
  const unsigned at = EMULATE_HERE;
  come({kNamed, machine.current->block, 0}, "all threads of the block", machine.threads, nullptr, nullptr, true, at);
}

void emulate_meet(int number, int threads) {
  const uint32_t at = EMULATE_HERE;
  if (number < 0 || number > 15 || threads % 32) fail("mismatched collective", "barrier 0 to 15, whole warps", at);
  come({kNamed, machine.current->block, unsigned(number)}, "a named barrier", threads, nullptr, nullptr, true, at);
}

void emulate_meet_warp(unsigned mask) { meet_lanes(mask, "the warp's lanes", nullptr, nullptr, true, EMULATE_HERE); }

void emulate_meet_cluster() {
  const uint32_t at = EMULATE_HERE;
  come({kCluster, 0, 0}, "all threads of the cluster", machine.threads * machine.ranks, nullptr, nullptr, true, at);
}

unsigned emulate_shuffle(unsigned mask, unsigned value, unsigned source) {
  Shuffle data{value, source, 0};
  meet_lanes(mask, "a shuffle", &data, shuffle, false, EMULATE_HERE);
  return data.result;
}

unsigned emulate_ballot(unsigned mask, bool is) {
  Shuffle data{is, 0, 0};
  meet_lanes(mask, "a vote", &data, ballot, false, EMULATE_HERE);
  return data.result;
}

bool emulate_elected() {
  meet_lanes(0xffffffffu, "an election", nullptr, nullptr, false, EMULATE_HERE);
  return machine.current->lane() == 0;
}
}
