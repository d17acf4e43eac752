// What the device headers' host versions call. Pointers are the kernel's own; every call is one CUDA thread's.
#pragma once

namespace emulate {

struct Index {
  unsigned x, y, z;
};

}  // namespace emulate

extern "C" {
emulate::Index emulate_thread() __attribute__((const));
emulate::Index emulate_block() __attribute__((const));
emulate::Index emulate_block_size() __attribute__((const));
emulate::Index emulate_grid_size() __attribute__((const));
unsigned emulate_rank() __attribute__((const));
void* emulate_shared_memory() __attribute__((const));
unsigned emulate_shared_address(const void* pointer) __attribute__((const));

void emulate_meet_block();
void emulate_meet(int number, int threads);
void emulate_meet_warp(unsigned mask);
void emulate_meet_cluster();
unsigned emulate_shuffle(unsigned mask, unsigned value, unsigned source);
unsigned emulate_ballot(unsigned mask, bool is);

void emulate_copy(void* to, const void* from, int bytes, int valid);  // cp.async; zeros from `valid` on
void emulate_copy_commit();
void emulate_copy_wait(int pending);

void emulate_barrier_init(void* barrier, unsigned arrivals);
void* emulate_in_block(void* pointer, unsigned rank);
void emulate_barrier_arrive(void* barrier, int rank);  // -1: of this block
void emulate_barrier_expect(void* barrier, unsigned bytes);
void emulate_barrier_wait(void* barrier, unsigned parity);
void emulate_fence_barriers();
void emulate_fence_async();

void emulate_fetch_box(unsigned blocks, void* to, const void* map, void* barrier, const int* at, int rank);
void emulate_store_box(const void* map, const void* from, const int* at, int rank);
void emulate_commit_stores();
void emulate_wait_stores(int pending);

void emulate_load_whole(void* registers, const void* from, int stride, int lines, int bytes, int element, bool turned);
void emulate_store_whole(void* registers, void* to, int stride, int lines, int bytes, int element, bool turned);

void emulate_group_begin();
void emulate_group_end();
void emulate_group_wait(int pending);
void emulate_issue(int intrinsic, void* const* operands);  // warp
void emulate_issue_group(int intrinsic, void* const* operands, unsigned across, bool keep);  // warpgroup, asynchronous

void emulate_aligned(const void* pointer, int bytes);  // compilers may split a wide access that is not
void emulate_atomic(void* address, int bytes);  // before an atomic access of the kernel
[[noreturn]] void emulate_trap(const char* what);
}
