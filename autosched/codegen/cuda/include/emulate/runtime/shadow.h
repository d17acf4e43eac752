// Shadow memory: who last wrote and read each byte, as epochs (FastTrack, Flanagan and Freund, PLDI 2009): a race is an
// access that does not know of an earlier one to the same byte, one of the two being a write.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "clocks.h"

namespace emulate {

constexpr uint16_t kSeveral = 0xffff;  // readers that do not know of one another: `read` is a number of `Shadow::readers`
constexpr uint32_t kByEngine = 1u << 31;  // of `write_at`: written by the asynchronous proxy itself

struct Cell {
  uint32_t write, read;              // times of their actors; 0: never
  uint32_t write_at, read_at;        // code addresses, from the module's start
  uint32_t write_era, read_era;      // which block (cluster) of which launch
  uint16_t writer, reader;
};

// An access: by whom, when, knowing what, from where in the code.
struct Access {
  uint32_t actor;
  uint32_t time;
  const Knowledge* knows;
  bool write;
  bool async_proxy;  // by TMA or a warpgroup product: sees writes of threads only past a proxy fence
  uint32_t at;
};

enum class Fault { kNone, kUninitialised, kRace, kOtherBlock, kProxy };

struct Region {
  uintptr_t base = 0;
  size_t bytes = 0;
  std::string name;
  bool writable = false, initialised = false, shared = false;
  Cell* cells = nullptr;

  void track() {
    if (cells) return;
    void* found = mmap(nullptr, bytes * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) abort();
    cells = static_cast<Cell*>(found);
  }

  void forget() {
    if (cells) munmap(cells, bytes * sizeof(Cell));
    cells = nullptr;
  }
};

struct Found {
  Fault fault = Fault::kNone;
  uint32_t byte = 0;
  bool other_writes = false;
  uint32_t other = 0;     // actor
  uint32_t other_at = 0;  // code address
};

class Shadow {
 public:
  uint32_t era = 1, launch_era = 1;
  uint32_t threads = 0;  // actors below are threads

  void new_launch() { launch_era = ++era; readers_.clear(); }
  void new_cluster() { ++era; readers_.clear(); }

  Found touch(Region& region, size_t offset, size_t size, const Access& access) {
    for (size_t i = 0; i < size; ++i) {
      Cell& cell = region.cells[offset + i];
      Found found = access.write ? write(cell, access) : read(region, cell, access);
      if (found.fault != Fault::kNone) {
        found.byte = i;
        return found;
      }
    }
    return {};
  }

 private:
  std::vector<Clock> readers_;

  bool of_other_block(uint32_t era_then) const { return era_then != era && era_then >= launch_era; }

  Found after_write(const Cell& cell, const Access& access) const {
    if (cell.write_era == era) {
      if (access.knows->seen.of(cell.writer) < cell.write) return {Fault::kRace, 0, true, cell.writer, cell.write_at & ~kByEngine};
      if (access.async_proxy && !(cell.write_at & kByEngine) && access.knows->fenced.of(cell.writer) < cell.write)
        return {Fault::kProxy, 0, true, cell.writer, cell.write_at & ~kByEngine};
    } else if (of_other_block(cell.write_era)) {
      return {Fault::kOtherBlock, 0, true, cell.writer, cell.write_at & ~kByEngine};
    }
    return {};
  }

  // A write after what this actor read at that time.
  Found after_read(const Cell& cell, const Access& access, uint32_t actor, uint32_t time) const {
    if (access.knows->seen.of(actor) < time) return {Fault::kRace, 0, false, actor, cell.read_at};
    if (access.async_proxy && actor < threads && access.knows->loaded.of(actor) < time)
      return {Fault::kProxy, 0, false, actor, cell.read_at};
    return {};
  }

  Found read(const Region& region, Cell& cell, const Access& access) {
    if (!region.initialised && cell.write_era == 0) return {Fault::kUninitialised, 0, false, 0, 0};
    if (Found found = after_write(cell, access); found.fault != Fault::kNone) return found;
    if (cell.read_era != era) {
      cell.read_era = era;
      cell.reader = access.actor;
      cell.read = access.time;
    } else if (cell.reader == kSeveral) {
      readers_[cell.read].set(access.actor, access.time);
    } else if (cell.reader == access.actor || access.knows->seen.of(cell.reader) >= cell.read) {
      cell.reader = access.actor;
      cell.read = access.time;
    } else {
      readers_.emplace_back();
      readers_.back().set(cell.reader, cell.read);
      readers_.back().set(access.actor, access.time);
      cell.reader = kSeveral;
      cell.read = readers_.size() - 1;
    }
    cell.read_at = access.at;
    return {};
  }

  Found write(Cell& cell, const Access& access) {
    if (Found found = after_write(cell, access); found.fault != Fault::kNone && found.fault != Fault::kProxy) return found;
    if (cell.read_era == era) {
      if (cell.reader != kSeveral) {
        if (Found found = after_read(cell, access, cell.reader, cell.read); found.fault != Fault::kNone) return found;
      } else {
        const std::vector<uint32_t>& at = readers_[cell.read].at;
        for (uint32_t actor = 0; actor < at.size(); ++actor)
          if (Found found = after_read(cell, access, actor, at[actor]); found.fault != Fault::kNone) return found;
      }
    } else if (cell.read && of_other_block(cell.read_era)) {
      return {Fault::kOtherBlock, 0, false, cell.reader, cell.read_at};
    }
    cell.write = access.time;
    cell.writer = access.actor;
    cell.write_at = access.at | (access.async_proxy ? kByEngine : 0);
    cell.write_era = era;
    cell.read = 0;
    cell.read_era = 0;
    return {};
  }
};

}  // namespace emulate
