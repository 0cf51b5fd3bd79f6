// Sorting, by all threads of a block.
#include "codegen/vocabulary/text.hpp"

namespace ein::codegen::text {

constexpr std::string_view sorting =
    R"cuda(// Keys order as values do. The zeros of both signs have one key, and so has every NaN:
// the greatest.
__device__ __forceinline__ u64 key_of(double x) {
  if (x != x) return ~0ull;
  const u64 bits = u64(__double_as_longlong(__dadd_rn(x, 0.0)));
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}
__device__ __forceinline__ u32 key_of(float x) {
  if (x != x) return ~0u;
  const u32 bits = __float_as_uint(__fadd_rn(x, 0.0f));
  return bits >> 31 ? ~bits : bits | 1u << 31;
}
__device__ __forceinline__ u64 key_of(i64 x) { return u64(x) ^ 1ull << 63; }
__device__ __forceinline__ u32 key_of(i32 x) { return u32(x) ^ 1u << 31; }
__device__ __forceinline__ u64 key_of(u64 x) { return x; }
__device__ __forceinline__ u32 key_of(u32 x) { return x; }

template <class Key, class Place>
struct Entry {
  Key key;
  Place place;
};

// Where the first of n ordered entries with no smaller key lies.
template <class Key, class Place>
__device__ __forceinline__ Place first_of(const Entry<Key, Place>* entries, Place n, Key key) {
  Place begin = 0;
  while (n > 0) {
    const Place half = n / 2;
    const bool is_before = entries[begin + half].key < key;
    begin = is_before ? begin + half + 1 : begin;
    n = is_before ? n - half - 1 : half;
  }
  return begin;
}

// Sorts n entries that lie in the order of their places by the lowest `bits` bits of their keys,
// with all threads of the block; equal keys keep their order. Digit by digit: each thread counts
// the digits of a run of entries, and moves them when it knows how many come before. Returns where
// the entries are then, here or in `spare`. `counts` has 16 elements for each thread, `totals` 16.
template <int threads, class Key, class Place>
__device__ inline Entry<Key, Place>* sorted(Entry<Key, Place>* entries, Entry<Key, Place>* spare,
                                            i64 n, int bits, Shared<Place>* counts,
                                            Shared<Place>* totals) {
  const int thread = threadIdx.x;
  const i64 run = (n + threads - 1) / threads;
  const i64 begin = thread * run < n ? thread * run : n;
  const i64 end = begin + run < n ? begin + run : n;
  for (int shift = 0; shift < bits; shift += 4) {
    Place own[16] = {};
    for (i64 i = begin; i < end; ++i) {
      const int digit = int(entries[i].key >> shift & 15);
#pragma unroll
      for (int d = 0; d < 16; ++d) own[d] += digit == d;
    }
    for (int d = 0; d < 16; ++d) counts[d * threads + thread] = own[d];
    __syncthreads();
    if (thread < 16) {
      Place sum = 0;
      for (int t = 0; t < threads; ++t) {
        const Place count = counts[thread * threads + t];
        counts[thread * threads + t] = sum;
        sum += count;
      }
      totals[thread] = sum;
    }
    __syncthreads();
    Place before = 0;
    for (int d = 0; d < 16; ++d) {
      own[d] = before + counts[d * threads + thread];
      before += totals[d];
    }
    for (i64 i = begin; i < end; ++i) {
      const Entry<Key, Place> entry = entries[i];
      const int digit = int(entry.key >> shift & 15);
      Place to = 0;
#pragma unroll
      for (int d = 0; d < 16; ++d) {
        if (digit == d) to = own[d]++;
      }
      spare[to] = entry;
    }
    __syncthreads();
    Entry<Key, Place>* const swapped = entries;
    entries = spare;
    spare = swapped;
  }
  return entries;
}

)cuda";

}  // namespace ein::codegen::text
