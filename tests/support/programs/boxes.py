"""CUDA text: a block copies a box of 32 by 32 floats through a tensor map (`cp.async.bulk.tensor`) and waits for it."""

MAP = "struct alignas(64) Map { unsigned long long words[16]; };"

COPY = r"""
    __shared__ alignas(128) float tile[32][32];
    __shared__ alignas(8) unsigned long long bar;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar), to = (unsigned)__cvta_generic_to_shared(tile);
    int x = blockIdx.x % 16 * 32, y = blockIdx.x / 16 * 32;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at), "r"(4096) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(to), "l"(&map), "r"(x), "r"(y), "r"(at) : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
"""
"""Statements of a kernel with the parameter `const __grid_constant__ Map map`, for a matrix of 512 columns: afterwards
`tile` holds the block's box, whose corner is at (y, x)."""
