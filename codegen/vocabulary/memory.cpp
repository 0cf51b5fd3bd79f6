// What kernels read and write: packs of neighbours, tables of tensors, and positions that may lie
// outside.
#include "codegen/vocabulary/text.hpp"

namespace ein::codegen::text {

constexpr std::string_view packs = R"cuda(// n neighbours, moved at once.
template <int n, class T>
struct alignas(n * sizeof(T)) Pack {
  T at[n];
};
template <int n, class C, class T>
__device__ __forceinline__ void load(C (&to)[n], const T* from) {
  const Pack<n, T> pack = *reinterpret_cast<const Pack<n, T>*>(aligned<sizeof(Pack<n, T>)>(from));
#pragma unroll
  for (int j = 0; j < n; ++j) to[j] = as<C>(pack.at[j]);
}
template <int n, class C, class T>
__device__ __forceinline__ void store(T* to, const C (&from)[n]) {
  Pack<n, T> pack;
#pragma unroll
  for (int j = 0; j < n; ++j) pack.at[j] = as<T>(from[j]);
  *reinterpret_cast<Pack<n, T>*>(aligned<sizeof(Pack<n, T>)>(to)) = pack;
}
// The same where only `count` of them are there.
template <int n, class C, class T>
__device__ __forceinline__ void load(C (&to)[n], const T* from, i64 count) {
  if (count >= n) return load(to, from);
#pragma unroll
  for (int j = 0; j < n; ++j) to[j] = j < count ? as<C>(from[j]) : C(0);
}
template <int n, class C, class T>
__device__ __forceinline__ void store(T* to, const C (&from)[n], i64 count) {
  if (count >= n) return store(to, from);
#pragma unroll
  for (int j = 0; j < n; ++j) {
    if (j < count) to[j] = as<T>(from[j]);
  }
}

)cuda";

constexpr std::string_view pairs = R"cuda(// 16-bit floats are converted in pairs.
template <int n>
__device__ __forceinline__ void store(bf16* to, const float (&from)[n]) {
  static_assert(n % 2 == 0);
  Pack<n / 2, u32> pack;
#pragma unroll
  for (int j = 0; j < n; j += 2) pack.at[j / 2] = packed_bf16(from[j], from[j + 1]);
  *reinterpret_cast<Pack<n / 2, u32>*>(to) = pack;
}
template <int n>
__device__ __forceinline__ void store(f16* to, const float (&from)[n]) {
  static_assert(n % 2 == 0);
  Pack<n / 2, u32> pack;
#pragma unroll
  for (int j = 0; j < n; j += 2) pack.at[j / 2] = packed_f16(from[j], from[j + 1]);
  *reinterpret_cast<Pack<n / 2, u32>*>(to) = pack;
}
// What was just loaded as a vector and not changed: the compiler would take it apart.
__device__ __forceinline__ void store_unchanged(float* to, const float (&from)[4]) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
               "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3])
               : "memory");
}

)cuda";

constexpr std::string_view tables =
    R"cuda(// Tensors that one launch works on: pointers of each, its elements, and its first block.
template <int tensors, int pointers>
struct Table {
  void* at[tensors][pointers];
  u64 elements[tensors];
  u64 first_block[tensors];
  __device__ int tensor_of(u64 block) const {
    int first = 0;
#pragma unroll
    for (int count = tensors; count > 1; count -= count / 2) {
      if (first_block[first + count / 2] <= block) first += count / 2;
    }
    return first;
  }
};

)cuda";

constexpr std::string_view faults =
    R"cuda(// Whether a slice lies in its axis; if not, the first to find out says so.
struct Fault {
  u64 happened;
  i64 position, size, length;
};
__device__ inline bool is_inside(i64 position, i64 size, Fault* fault, i64 length = 1,
                                 i64 parts = 1) {
  if (u64(position) < u64(size - length + 1)) return true;
  if (atomicCAS(&fault->happened, 0ull, 1ull) == 0) {
    fault->position = position;
    fault->size = size * parts;
    fault->length = length;
  }
  return false;
}

)cuda";

}  // namespace ein::codegen::text
