// Boxes of tensors that TMA moves, at any moment between the call and what waits for it.
#pragma once

#include "autosched/address.cuh"
#include "autosched/barrier.cuh"

namespace autosched {

struct alignas(64) TensorMap {
    unsigned long long words[16];
};

__device__ __forceinline__ void prefetch_map(const TensorMap&) {}

template <class... At>
__device__ __forceinline__ void fetch_box(void* to, const TensorMap& map, Barrier* barrier, At... at) {
    const int place[] = {at...};
    emulate_fetch_box(0, to, &map, barrier, place, sizeof...(At));
}

template <class... At>
__device__ __forceinline__ void fetch_box_for(unsigned short blocks, void* to, const TensorMap& map, Barrier* barrier, At... at) {
    const int place[] = {at...};
    emulate_fetch_box(blocks, to, &map, barrier, place, sizeof...(At));
}

template <class... At>
__device__ __forceinline__ void fetch_pixels(void* to, const TensorMap& map, Barrier* barrier, At... at) {
    fetch_box(to, map, barrier, at...);
}

template <class... At>
__device__ __forceinline__ void fetch_pixels_for(unsigned short blocks, void* to, const TensorMap& map, Barrier* barrier, At... at) {
    fetch_box_for(blocks, to, map, barrier, at...);
}

template <class... At>
__device__ __forceinline__ void store_box(const TensorMap& map, const void* from, At... at) {
    const int place[] = {at...};
    emulate_store_box(&map, from, place, sizeof...(At));
}

__device__ __forceinline__ void commit_stores() { emulate_commit_stores(); }

template <int Pending>
__device__ __forceinline__ void wait_stores_read() {
    emulate_wait_stores(Pending);
}

}  // namespace autosched
