// Types of elements as they are stored: C's integers by their width, small floats as their bits.
#pragma once

#ifdef __CUDACC_RTC__  // no headers of the C library there
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
using uintptr_t = unsigned long long;

// What they define, as far as printed arithmetic uses it.
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_C(x) x##ll
#define UINT64_C(x) x##ull
#define DBL_MAX 1.7976931348623157e308
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)
#else
#include <float.h>
#include <math.h>
#include <stdint.h>
#endif

namespace autosched {

using f16 = uint16_t;
using bf16 = uint16_t;
using e4m3 = uint8_t;
using e5m2 = uint8_t;

}  // namespace autosched
