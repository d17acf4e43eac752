// What another lane of the warp holds. All 32 lanes call these together.
#pragma once

#include "autosched/types.cuh"

namespace autosched {

// A value of 1, 2, 4 or 8 bytes through shuffles of 32 bits; `move` shuffles one word.
template <class T, class Move>
__device__ __forceinline__ T moved(T value, Move move) {
    union {
        unsigned words[sizeof(T) > 4 ? 2 : 1];
        T value;
    } both = {};
    both.value = value;
    for (unsigned& word : both.words) word = move(word);
    return both.value;
}

// That of the lane whose number is this one's exclusive or `distance`.
template <class T>
__device__ __forceinline__ T of_partner(T value, int distance) {
    return moved(value, [=](unsigned word) { return __shfl_xor_sync(0xffffffffu, word, distance); });
}

// That of one lane, for all.
template <class T>
__device__ __forceinline__ T of_lane(T value, int lane) {
    return moved(value, [=](unsigned word) { return __shfl_sync(0xffffffffu, word, lane); });
}

}  // namespace autosched
