// What a special-function unit computes.
#pragma once

namespace autosched {

// 2^x within 2 ulp; subnormal arguments and results are 0. PTX ISA, ex2.approx.
__device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

}  // namespace autosched
