// Tiles that TMA moves between global and shared memory. One thread asks; TMA does the rest.
//
// A tensor map says how a tensor lies in memory (extents and strides of up to five dimensions, the innermost first),
// which box of it is moved at once, how the box is swizzled in shared memory, and that elements outside the tensor
// are zeros. The host encodes it (`cuTensorMapEncodeTiled`) and passes it as a `__grid_constant__` parameter. A map of
// pixels (`cuTensorMapEncodeIm2col`) says instead which places a window's corner passes over images.
// Coordinates are in elements, the innermost first, and may lie outside; elements of a store outside the tensor are
// dropped.
//
// PTX ISA, cp.async.bulk.tensor. sm_90.
#pragma once

#include "autosched/address.cuh"
#include "autosched/barrier.cuh"

namespace autosched {

struct alignas(64) TensorMap {
    unsigned long long words[16];
};

// The map will be wanted soon.
__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Fetch the box at these coordinates to `to`; its bytes count at `barrier`.
__device__ __forceinline__ void fetch_box(void* to, const TensorMap& map, Barrier* barrier, int c0, int c1) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1)
        : "memory");
}

__device__ __forceinline__ void fetch_box(void* to, const TensorMap& map, Barrier* barrier, int c0, int c1, int c2) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2)
        : "memory");
}

__device__ __forceinline__ void fetch_box(void* to, const TensorMap& map, Barrier* barrier,
                                          int c0, int c1, int c2, int c3) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
        : "memory");
}

__device__ __forceinline__ void fetch_box(void* to, const TensorMap& map, Barrier* barrier,
                                          int c0, int c1, int c2, int c3, int c4) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
        : "memory");
}

// The same into the shared memory of several blocks of the cluster, at the same place in each and counted at the
// barrier of each; bit r of `blocks` stands for the block of rank r.
__device__ __forceinline__ void fetch_box_for(unsigned short blocks, void* to, const TensorMap& map, Barrier* barrier,
                                              int c0, int c1) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%4, %5}], "
        "[%2], %3;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "h"(blocks), "r"(c0), "r"(c1)
        : "memory");
}

__device__ __forceinline__ void fetch_box_for(unsigned short blocks, void* to, const TensorMap& map, Barrier* barrier,
                                              int c0, int c1, int c2) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%4, %5, %6}], "
        "[%2], %3;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "h"(blocks), "r"(c0), "r"(c1), "r"(c2)
        : "memory");
}

__device__ __forceinline__ void fetch_box_for(unsigned short blocks, void* to, const TensorMap& map, Barrier* barrier,
                                              int c0, int c1, int c2, int c3) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%4, %5, %6, %7}], "
        "[%2], %3;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "h"(blocks), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
        : "memory");
}

__device__ __forceinline__ void fetch_box_for(unsigned short blocks, void* to, const TensorMap& map, Barrier* barrier,
                                              int c0, int c1, int c2, int c3, int c4) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%4, %5, %6, %7, %8}], "
        "[%2], %3;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "h"(blocks), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
        : "memory");
}

// Fetch pixels: where the window's corner passes from these coordinates on, at place (w0, w1, …) inside the window.
__device__ __forceinline__ void fetch_pixels(void* to, const TensorMap& map, Barrier* barrier,
                                             int c0, int c1, int c2, unsigned short w0) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], "
        "[%2], {%6};" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2),
        "h"(w0)
        : "memory");
}

__device__ __forceinline__ void fetch_pixels(void* to, const TensorMap& map, Barrier* barrier,
                                             int c0, int c1, int c2, int c3, unsigned short w0, unsigned short w1) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], "
        "[%2], {%7, %8};" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3),
        "h"(w0), "h"(w1)
        : "memory");
}

__device__ __forceinline__ void fetch_pixels(void* to, const TensorMap& map, Barrier* barrier,
                                             int c0, int c1, int c2, int c3, int c4, unsigned short w0, unsigned short w1, unsigned short w2) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6, %7}], "
        "[%2], {%8, %9, %10};" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4),
        "h"(w0), "h"(w1), "h"(w2)
        : "memory");
}

// The same for several blocks of the cluster.
__device__ __forceinline__ void fetch_pixels_for(unsigned short blocks, void* to, const TensorMap& map, Barrier* barrier,
                                                 int c0, int c1, int c2, unsigned short w0) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%4, %5, %6}], "
        "[%2], {%7}, %3;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "h"(blocks), "r"(c0), "r"(c1), "r"(c2),
        "h"(w0)
        : "memory");
}

__device__ __forceinline__ void fetch_pixels_for(unsigned short blocks, void* to, const TensorMap& map, Barrier* barrier,
                                                 int c0, int c1, int c2, int c3, unsigned short w0, unsigned short w1) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%4, %5, %6, %7}], "
        "[%2], {%8, %9}, %3;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "h"(blocks), "r"(c0), "r"(c1), "r"(c2), "r"(c3),
        "h"(w0), "h"(w1)
        : "memory");
}

__device__ __forceinline__ void fetch_pixels_for(unsigned short blocks, void* to, const TensorMap& map, Barrier* barrier,
                                                 int c0, int c1, int c2, int c3, int c4, unsigned short w0, unsigned short w1, unsigned short w2) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%4, %5, %6, %7, %8}], "
        "[%2], {%9, %10, %11}, %3;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "h"(blocks), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4),
        "h"(w0), "h"(w1), "h"(w2)
        : "memory");
}

// Store the box at `from`, which threads wrote: `fence_async` by each of them and a barrier stand before.
__device__ __forceinline__ void store_box(const TensorMap& map, const void* from, int c0, int c1) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
                 "r"(shared_address(from)), "r"(c0), "r"(c1)
                 : "memory");
}

__device__ __forceinline__ void store_box(const TensorMap& map, const void* from, int c0, int c1, int c2) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
                 "r"(shared_address(from)), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}

__device__ __forceinline__ void store_box(const TensorMap& map, const void* from, int c0, int c1, int c2, int c3) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
                 "r"(shared_address(from)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ __forceinline__ void store_box(const TensorMap& map, const void* from,
                                          int c0, int c1, int c2, int c3, int c4) {
    asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
                 "r"(shared_address(from)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
                 : "memory");
}

// The stores of this thread since the last call are a group.
__device__ __forceinline__ void commit_stores() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// All groups of this thread but the last `Pending` have been read from shared memory, which may be written again.
template <int Pending>
__device__ __forceinline__ void wait_stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

}  // namespace autosched
