// matmul: C = A B.
// For nvidia-h200 (sm_90a).
//
// Schedule: reg_i = 2, warps_i = 2, reg_j = 4, warps_j = 1, raster = last fastest, stage_a = shared, stage_b =
// shared, block_p = 2, unroll = 1, swizzle = 64 B, padding = none, copy = cp.async, stages = 3, vector = 16 B, roles
// = together, persistent = no, group = 1, split = 1, fragments = in turn, epilogue = direct.
#include "autosched/address.cuh"
#include "autosched/copy.cuh"
#include "autosched/fragment.cuh"
#include "autosched/limit.cuh"
#include "autosched/types.cuh"

using namespace autosched;

// 4 8x8 matrices of 16-bit elements from shared memory to registers, transposed.
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&y)[4], const void* x) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
        : "r"(shared_address(x)) : "memory");
}

// 4 8x8 matrices of 16-bit elements from shared memory to registers.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&y)[4], const void* x) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
        : "r"(shared_address(x)) : "memory");
}

// A warp's 16x8x16 f16 product added to f32.
__device__ __forceinline__ void mma_m16n8k16_f16_f16_f32(
        float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
          "r"(b[0]), "r"(b[1]));
}

// 8 x 4 blocks of 64 threads, 18,432 bytes of shared memory.
extern "C" __global__ void LIMIT_REGISTERS(64, 73) matmul(
        const f16* __restrict__ A,
        const f16* __restrict__ B,
        float* __restrict__ C) {
    extern __shared__ __align__(1024) unsigned char shared[];
    f16* const A_shared = reinterpret_cast<f16*>(shared);  // [3, 1, 64, 4, 8]
    f16* const B_shared = reinterpret_cast<f16*>(shared + 12288);  // [3, 1, 32, 4, 8]
    const int ib = blockIdx.y;  // blocks of i
    const int jb = blockIdx.x;  // blocks of j
    const int thread = threadIdx.x;
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    float acc[2][4][4];
    uint32_t b_reg[4][2];
    uint32_t a_reg[4];

    #pragma unroll
    for (int ir = 0; ir < 2; ++ir) {
        #pragma unroll
        for (int jr = 0; jr < 4; ++jr) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) acc[ir][jr][v] = 0.0f;
        }
    }
    f16* const A_shared_at = &A_shared[thread / 4 * 32 + ((thread % 4) ^ (thread / 8 % 4)) * 8];
    const f16* const A_at = &A[ib * 16384 + thread / 4 * 256 + thread % 4 * 8];
    f16* const B_shared_at = &B_shared[thread / 4 * 32 + ((thread % 4) ^ (thread / 8 % 4)) * 8];
    const f16* const B_at = &B[thread / 4 * 256 + jb * 32 + thread % 4 * 8];
    // copy a slice of A
    #pragma unroll UNROLL(4)
    for (int turn = 0; turn < 4; ++turn) {
        start_copy<16>(&A_shared_at[turn * 512], &A_at[turn * 4096]);
    }
    // copy a slice of B
    #pragma unroll UNROLL(2)
    for (int turn = 0; turn < 2; ++turn) {
        start_copy<16>(&B_shared_at[turn * 512], &B_at[turn * 4096]);
    }
    end_copies();
    // copy a slice of A
    #pragma unroll UNROLL(4)
    for (int turn = 0; turn < 4; ++turn) {
        start_copy<16>(&A_shared_at[turn * 512 + 2048], &A_at[turn * 4096 + 32]);
    }
    // copy a slice of B
    #pragma unroll UNROLL(2)
    for (int turn = 0; turn < 2; ++turn) {
        start_copy<16>(&B_shared_at[turn * 512 + 1024], &B_at[turn * 4096 + 8192]);
    }
    end_copies();
    f16* const B_shared_at2 = &B_shared[lane % 16 * 32];
    f16* const A_shared_at2 = &A_shared[warp * 1024 + lane % 16 * 32];
    int slot_2 = 2;
    int slot = 0;
    #pragma unroll 1
    for (int slice = 0; slice < 8; ++slice) {  // slices of C
        wait_copies<1>();
        __syncthreads();
        if (slice < 6) {
            // copy a slice of A
            #pragma unroll UNROLL(4)
            for (int turn = 0; turn < 4; ++turn) {
                start_copy<16>(&A_shared_at[slot_2 * 2048 + turn * 512], &A_at[turn * 4096 + slice * 32 + 64]);
            }
            // copy a slice of B
            #pragma unroll UNROLL(2)
            for (int turn = 0; turn < 2; ++turn) {
                start_copy<16>(&B_shared_at[slot_2 * 1024 + turn * 512], &B_at[slice * 8192 + turn * 4096 + 16384]);
            }
        }
        end_copies();
        #pragma unroll UNROLL(2)
        for (int pu = 0; pu < 2; ++pu) {
            #pragma unroll
            for (int jr = 0; jr < 2; ++jr) {
                ldmatrix_x4_trans(joined<4>(b_reg[jr * 2]), &B_shared_at2[slot * 1024 + pu * 512 + ((jr * 2 + lane / 16) ^ (lane / 2 % 4)) * 8]);
            }
            #pragma unroll
            for (int ir = 0; ir < 2; ++ir) {
                ldmatrix_x4(a_reg, &A_shared_at2[slot * 2048 + ir * 512 + ((pu * 2 + lane / 16) ^ (lane / 2 % 4)) * 8]);
                #pragma unroll
                for (int jr = 0; jr < 4; ++jr) {
                    mma_m16n8k16_f16_f16_f32(acc[ir][jr], a_reg, b_reg[jr]);
                }
            }
        }
        slot_2 = slot_2 == 2 ? 0 : slot_2 + 1;
        slot = slot == 2 ? 0 : slot + 1;
    }
    float* const C_at = &C[ib * 16384 + warp * 8192 + lane / 4 * 256 + jb * 32 + lane % 4 * 2];
    wait_copies<0>();
    #pragma unroll
    for (int ir = 0; ir < 2; ++ir) {
        #pragma unroll
        for (int jr = 0; jr < 4; ++jr) {
            #pragma unroll
            for (int u = 0; u < 2; ++u) copy<8>(&C_at[ir * 4096 + u * 2048 + jr * 8], &acc[ir][jr][u * 2]);
        }
    }
}
