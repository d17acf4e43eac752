// matmul_to: C = A B, summed in `acc` and converted to `out`.
// For nvidia-h200 (sm_90a).
//
// Schedule: reg_i = 1, groups_i = 2, reg_j = 2, groups_j = 1, raster = last fastest, stage_a = descriptor, stage_b =
// descriptor, block_p = 4, unroll = 1, swizzle = 128 B, copy = TMA, stages = 3, vector = element, roles = producer,
// persistent = yes, cluster = 2 along i, group = 8, split = 1, gather = memory, epilogue = TMA.
#include "autosched/barrier.cuh"
#include "autosched/bulk.cuh"
#include "autosched/cluster.cuh"
#include "autosched/convert.cuh"
#include "autosched/copy.cuh"
#include "autosched/roles.cuh"
#include "autosched/types.cuh"
#include "autosched/wgmma.cuh"

using namespace autosched;

// A warpgroup's 64x64x16 bf16 product added to f32.
__device__ __forceinline__ void wgmma_m64n64k16_bf16_f32_mn_k(float (&c)[32], uint64_t a, uint64_t b, int keep) {
    asm volatile("{ .reg .pred keep; setp.ne.b32 keep, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, keep, 1, 1, 0, 1; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]),
          "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
          "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
          "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]),
          "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]),
          "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
          "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
          "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
        : "l"(a), "l"(b), "r"(keep));
}

// 132 blocks of 384 threads, clusters of 2, 131,120 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(384, 1) matmul_to(
        const __grid_constant__ TensorMap A_shared_map,
        const __grid_constant__ TensorMap B_shared_map,
        const __grid_constant__ TensorMap C_tile_map) {
    extern __shared__ __align__(1024) unsigned char shared[];
    bf16* const A_shared = reinterpret_cast<bf16*>(shared);  // [3, 1, 128, 8, 8]
    bf16* const B_shared = reinterpret_cast<bf16*>(shared + 49152);  // [3, 2, 64, 8, 8]
    bf16* const C_tile = reinterpret_cast<bf16*>(shared + 98304);  // [2, 2, 64, 8, 8]
    Barrier* const full = reinterpret_cast<Barrier*>(shared + 131072);  // [3]
    Barrier* const empty = reinterpret_cast<Barrier*>(shared + 131096);  // [3]
    const int block = blockIdx.x / 2;  // clusters of 2
    const int cluster = cluster_rank();
    const int warpgroup = threadIdx.x / 128;
    const int lane = threadIdx.x % 128;
    float acc[1][2][32];

    if (threadIdx.x == 0) {
        prefetch_map(A_shared_map);
        prefetch_map(B_shared_map);
        prefetch_map(C_tile_map);
        for (int s = 0; s < 3; ++s) barrier_init(&full[s], 1);
        for (int s = 0; s < 3; ++s) barrier_init(&empty[s], 4);
        fence_barriers();
    }
    meet_cluster();
    bf16* const B_shared_at = &B_shared[cluster * 4096];
    bf16* const C_tile_at = &C_tile[warpgroup * 8192 + lane / 32 * 1024 + lane / 4 % 8 * 64 + lane % 4 * 2];
    bf16* const C_tile_at2 = &C_tile[warpgroup * 8192];
    if (threadIdx.x >= 256) {  // producer
        keep_registers<40>();
        if (threadIdx.x == 256) {
            #pragma unroll 1
            for (int turn = 0; turn < 8; ++turn) {  // work of a persistent block
                if (block + turn * 66 < 512) {
                    int slot = turn * 64 % 3;
                    #pragma unroll 1
                    for (int slice = 0; slice < 64; ++slice) {  // slices of S
                        barrier_wait(&empty[slot], ((slice + turn * 64) / 3 + 1) % 2);
                        barrier_expect(&full[slot], 32768);
                        fetch_box(&A_shared[slot * 8192], A_shared_map, &full[slot], slice * 64, (block + turn * 66) / 256 % 2 * 2048 + (block + turn * 66) % 8 * 256 + cluster * 128);
                        fetch_box_for(3, &B_shared_at[slot * 8192], B_shared_map, &full[slot], (block + turn * 66) / 8 % 32 * 128 + cluster * 64, slice * 64);
                        slot = slot == 2 ? 0 : slot + 1;
                    }
                }
            }
            int slot_ = ((block < 50) ? 512 : 448) % 3;
            #pragma unroll 1
            for (int slice = 0; slice < 3; ++slice) {  // stages that others signal
                barrier_wait(&empty[slot_], ((slice + ((block < 50) ? 512 : 448)) / 3 + 1) % 2);
                slot_ = slot_ == 2 ? 0 : slot_ + 1;
            }
        }
    } else {  // consumers
        take_registers<232>();
        #pragma unroll 1
        for (int turn = 0; turn < 8; ++turn) {  // work of a persistent block
            if (block + turn * 66 < 512) {
                int slot__ = turn * 64 % 3;
                int slot___ = (turn * 64 + 2) % 3;
                #pragma unroll 1
                for (int slice = 0; slice < 64; ++slice) {  // slices of S
                    barrier_wait(&full[slot__], (slice + turn * 64) / 3 % 2);
                    group_begin();
                    #pragma unroll
                    for (int pu = 0; pu < 4; ++pu) {
                        #pragma unroll
                        for (int jr = 0; jr < 2; ++jr) {
                            wgmma_m64n64k16_bf16_f32_mn_k(acc[0][jr], descriptor<128>(A_shared, 16, 1024) + (slot__ * 1024 + warpgroup * 512 + pu * 2), descriptor<128>(B_shared, 8192, 1024) + (slot__ * 1024 + jr * 512 + pu * 128), !(slice == 0 && pu == 0));
                        }
                    }
                    group_end();
                    group_wait<1>();
                    if (slice >= 1) {
                        if (lane < 2) barrier_arrive(&empty[slot___], lane);
                    }
                    slot__ = slot__ == 2 ? 0 : slot__ + 1;
                    slot___ = slot___ == 2 ? 0 : slot___ + 1;
                }
                group_wait<0>();
                hold(acc);
                if (lane < 2) barrier_arrive(&empty[turn * 64 % 3], lane);
                if (lane == 0) wait_stores_read<0>();
                meet(warpgroup + 2, 128);
                #pragma unroll
                for (int jr = 0; jr < 2; ++jr) {
                    #pragma unroll
                    for (int u = 0; u < 16; ++u) {
                        alignas(4) bf16 row[2];
                        #pragma unroll
                        for (int x = 0; x < 2; ++x) row[x] = bits_bf16(acc[0][jr][u * 2 + x]);
                        copy<4>(&C_tile_at[jr * 4096 + u % 2 * 512 + ((u / 2) ^ (lane / 4 % 8)) * 8], row);
                    }
                }
                fence_async();
                meet(warpgroup + 2, 128);
                if (lane == 0) {
                    #pragma unroll
                    for (int out_s = 0; out_s < 2; ++out_s) {  // spans of C
                        store_box(C_tile_map, &C_tile_at2[out_s * 4096], (block + turn * 66) / 8 % 32 * 128 + out_s * 64, (block + turn * 66) / 256 % 2 * 2048 + (block + turn * 66) % 8 * 256 + cluster * 128 + warpgroup * 64);
                    }
                    commit_stores();
                }
            }
        }
        if (lane == 0) wait_stores_read<0>();
    }
}
