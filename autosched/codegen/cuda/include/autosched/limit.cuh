// How many registers a thread of a kernel may take: with a limit close above what it needs, `ptxas` uses nearly all of it.
//
// AUTOSCHED_UNLIMITED: the compiler chooses by itself, as compilers before CUDA 12.4 do, which do not know the word.
// AUTOSCHED_ROLLED: loops of copies and depth units stay loops. Unrolled, all their addresses and loads are moved ahead,
// which may take more registers than there are.
#pragma once

#if defined(AUTOSCHED_UNLIMITED) || __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1204
#define LIMIT_REGISTERS(threads, count) __launch_bounds__(threads)
#else
#define LIMIT_REGISTERS(threads, count) __maxnreg__(count)
#endif

#if defined(AUTOSCHED_ROLLED)
#define UNROLL(trips) 1
#else
#define UNROLL(trips) trips
#endif
