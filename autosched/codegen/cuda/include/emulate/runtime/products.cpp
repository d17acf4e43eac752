// Instructions of a warp or a warpgroup: registers are gathered, the description's model answers, results are put back.
#include "machine.h"

namespace emulate {

struct Operand {
  uint32_t bytes;    // of a lane's registers
  uint32_t written;  // 1: the accumulator
};

struct Intrinsic {
  uint32_t lanes = 32;
  std::vector<Operand> operands;
};

static std::vector<Intrinsic> intrinsics;

struct Issue {
  int intrinsic;
  char* buffer;
};

static void run_model(void* data) {
  const Issue& issue = *static_cast<Issue*>(data);
  machine.model(issue.intrinsic, issue.buffer);
}

struct Call {
  int intrinsic;
  void* const* operands;
};

static void issue(Meeting& meeting) {
  const int number = static_cast<Call*>(meeting.data.front())->intrinsic;
  const Intrinsic& it = intrinsics[number];
  size_t total = 0;
  for (const Operand& o : it.operands) total += size_t(o.bytes) * it.lanes;
  std::vector<char> buffer(total);
  size_t start = 0;
  std::vector<unsigned> place(meeting.who.size());
  for (size_t i = 0; i < meeting.who.size(); ++i) place[i] = meeting.who[i]->number % it.lanes;
  for (size_t n = 0; n < it.operands.size(); ++n) {
    const Operand& o = it.operands[n];
    for (size_t i = 0; i < meeting.who.size(); ++i)
      memcpy(buffer.data() + start + place[i] * o.bytes, static_cast<Call*>(meeting.data[i])->operands[n], o.bytes);
    start += size_t(o.bytes) * it.lanes;
  }
  Issue request{number, buffer.data()};
  on_scheduler(run_model, &request);
  start = 0;
  for (size_t n = 0; n < it.operands.size(); ++n) {
    const Operand& o = it.operands[n];
    if (o.written)
      for (size_t i = 0; i < meeting.who.size(); ++i)
        memcpy(static_cast<Call*>(meeting.data[i])->operands[n], buffer.data() + start + place[i] * o.bytes, o.bytes);
    start += size_t(o.bytes) * it.lanes;
  }
}

// -- matrices of 16-bit elements between shared memory and registers

struct Matrices {
  unsigned* words;
  int count;
  char* row;
  bool turned;
};

static Matrices* of_lane(Meeting& meeting, unsigned lane) {
  for (size_t i = 0; i < meeting.who.size(); ++i)
    if (meeting.who[i]->lane() == lane) return static_cast<Matrices*>(meeting.data[i]);
  return nullptr;
}

static void each_row(Meeting& meeting, bool write) {
  Fiber* me = machine.current;
  const int count = static_cast<Matrices*>(meeting.data.front())->count;
  for (size_t i = 0; i < meeting.who.size(); ++i) {
    if (int(meeting.who[i]->lane()) >= 8 * count) continue;
    machine.current = meeting.who[i];
    char* row = static_cast<Matrices*>(meeting.data[i])->row;
    const Region* region = region_of(reinterpret_cast<uintptr_t>(row));
    if (region && !region->shared) fail("out of bounds", "matrices are moved to and from shared memory only", meeting.at);
    touch(row, 16, write, meeting.at);
  }
  machine.current = me;
}

static void move(Meeting& meeting, bool store) {
  const Matrices& first = *static_cast<Matrices*>(meeting.data.front());
  for (int m = 0; m < first.count; ++m)
    for (unsigned lane = 0; lane < 32; ++lane) {
      char* word = reinterpret_cast<char*>(of_lane(meeting, lane)->words + m);
      for (unsigned half = 0; half < 2; ++half) {
        unsigned row = lane / 4, column = 2 * (lane % 4) + half;
        if (first.turned) std::swap(row, column);
        char* element = of_lane(meeting, 8 * m + row)->row + 2 * column;
        if (store)
          memcpy(element, word + 2 * half, 2);
        else
          memcpy(word + 2 * half, element, 2);
      }
    }
}

static void load(Meeting& meeting) {
  each_row(meeting, false);
  move(meeting, false);
}

static void store(Meeting& meeting) {
  each_row(meeting, true);
  move(meeting, true);
}

}  // namespace emulate

using namespace emulate;

extern "C" {

void emulate_forget_intrinsics() { intrinsics.clear(); }

int emulate_add_intrinsic(unsigned lanes, const unsigned* bytes, const unsigned* written, unsigned count) {
  Intrinsic it;
  it.lanes = lanes;
  for (unsigned i = 0; i < count; ++i) it.operands.push_back({bytes[i], written[i]});
  intrinsics.push_back(std::move(it));
  return intrinsics.size() - 1;
}

void emulate_issue(int intrinsic, void* const* operands) {
  Call call{intrinsic, operands};
  meet_lanes(0xffffffffu, "an instruction of the warp", &call, issue, false, EMULATE_HERE);
}

void emulate_load_matrices(unsigned* words, int count, const void* row, bool turned) {
  Matrices data{words, count, static_cast<char*>(const_cast<void*>(row)), turned};
  meet_lanes(0xffffffffu, "a load of matrices", &data, load, false, EMULATE_HERE);
}

void emulate_store_matrices(const unsigned* words, int count, void* row, bool turned) {
  Matrices data{const_cast<unsigned*>(words), count, static_cast<char*>(row), turned};
  meet_lanes(0xffffffffu, "a store of matrices", &data, store, false, EMULATE_HERE);
}
}
