#include "codegen/vocabulary.hpp"

#include <algorithm>
#include <vector>

namespace ein::codegen {
namespace {

/// The two sections that a host replaces.
constexpr std::string_view machine = R"cuda(// What shared memory is made of.
template <class T>
using Shared = T;

// An address that is a multiple of so many bytes.
template <int bytes, class T>
__device__ __forceinline__ T* aligned(T* address) {
  return address;
}

// Bits of the nearest 16-bit float, ties to even, and back.
__device__ __forceinline__ unsigned short f16_bits(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
__device__ __forceinline__ float float_of_f16(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
__device__ __forceinline__ unsigned short bf16_bits(float x) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

)cuda";

constexpr std::string_view tensor_cores =
    R"cuda(// What a launch adds to the shared memory of a block.
__device__ __forceinline__ unsigned char* dynamic_memory() {
  extern __shared__ __align__(16) unsigned char memory[];
  return memory;
}
template <class T>
__device__ __forceinline__ Shared<T>* shared_memory() {
  return reinterpret_cast<T*>(dynamic_memory());
}
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return unsigned(__cvta_generic_to_shared(pointer));
}

// n elements, 4, 8 or 16 bytes, from global to shared memory, or zeros, while the thread goes on.
template <int n, class T>
__device__ __forceinline__ void copy_async(T* to, const T* from, bool inside) {
  constexpr int bytes = n * sizeof(T);
  if (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(inside ? 16 : 0)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
                 "l"(from), "n"(bytes), "r"(inside ? bytes : 0)
                 : "memory");
  }
}
// Copies asked for since the last commit become a group; waits for all groups but the last n.
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int n>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}

// Four 8 x 8 matrices of 16-bit elements; lane 8 i + r says where row r of matrix i begins. A lane
// gets of each the elements 2 (lane % 4) and the next of row lane / 4.
template <class T>
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
// The same of the transposed matrices.
template <class T>
__device__ __forceinline__ void load_matrices_turned(unsigned (&r)[4], const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

// The nearest number of 8 bits of exponent and 10 of mantissa, ties away from zero.
__device__ __forceinline__ unsigned tf32_bits(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

// Two floats, and n of them, to and from shared memory at once.
__device__ __forceinline__ void put(float* to, float a, float b) {
  *reinterpret_cast<float2*>(to) = make_float2(a, b);
}
template <int n>
__device__ __forceinline__ void take(float (&to)[n], const float* from) {
  if constexpr (n % 4 == 0) {
#pragma unroll
    for (int j = 0; j < n; j += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + j);
      to[j] = four.x, to[j + 1] = four.y, to[j + 2] = four.z, to[j + 3] = four.w;
    }
  } else {
    const float2 two = *reinterpret_cast<const float2*>(from);
    to[0] = two.x, to[1] = two.y;
  }
}

)cuda";

/// c += a b by mma.sync: 16 rows, 8 columns, and `depth` elements along the depth in 32 bytes.
std::string warp_product(const std::string& name, const std::string& type, int depth) {
  return "// c += a b for the matrices of a warp, in the layout of mma.m16n8k" +
         std::to_string(depth) +
         ".\n"
         "__device__ __forceinline__ void multiply_add_" +
         name +
         "(float (&c)[4], const unsigned (&a)[4],\n"
         "                                               const unsigned (&b)[2]) {\n"
         "  asm(\"mma.sync.aligned.m16n8k" +
         std::to_string(depth) + ".row.col.f32." + type + "." + type +
         ".f32 {%0, %1, %2, %3}, \"\n"
         "      \"{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
         "      : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3])\n"
         "      : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));\n"
         "}\n\n";
}

constexpr std::string_view hopper =
    R"cuda(// Barriers in shared memory (mbarrier). A phase ends when all have arrived, and all bytes.
struct Barrier {
  unsigned long long state;
};
__device__ __forceinline__ void begin_barrier(Barrier* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
// Barriers that have begun are seen by copies, too.
__device__ __forceinline__ void end_of_beginning() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
__device__ __forceinline__ void arrive_expecting(Barrier* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
// Until the last phase of this parity has ended; before the first phase, an odd one has.
__device__ __forceinline__ void wait_for(Barrier* barrier, unsigned parity) {
  unsigned is_over = 0;
  while (!is_over) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(is_over)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}

// A tensor as the driver describes it (CUtensorMap). load_tile asks for the box that begins at
// these indices, innermost first; its bytes arrive at the barrier.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};
__device__ __forceinline__ void load_tile(unsigned char* to, const TensorMap& map, Barrier* full,
                                          int i, int j) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4}], [%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(full)), "r"(i), "r"(j)
      : "memory");
}
__device__ __forceinline__ void load_tile(unsigned char* to, const TensorMap& map, Barrier* full,
                                          int i, int j, int k) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(full)), "r"(i), "r"(j), "r"(k)
      : "memory");
}
__device__ __forceinline__ void load_tile(unsigned char* to, const TensorMap& map, Barrier* full,
                                          int i, int j, int k, int l) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(full)), "r"(i), "r"(j), "r"(k), "r"(l)
      : "memory");
}
__device__ __forceinline__ void load_tile(unsigned char* to, const TensorMap& map, Barrier* full,
                                          int i, int j, int k, int l, int m) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(full)), "r"(i), "r"(j), "r"(k), "r"(l), "r"(m)
      : "memory");
}
// Where tiles lie: the pattern by which they are swizzled begins anew every 1024 bytes.
__device__ __forceinline__ unsigned char* swizzled_memory() {
  return dynamic_memory() + (0u - shared_address(dynamic_memory()) & 1023u);
}

// Registers of each thread of a warpgroup, to be had by others.
template <int n>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n));
}
template <int n>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n));
}

// Products of a warpgroup go on while it does other things. Between begin_products and
// end_products, `sum` is theirs: the compiler moves no use of it into there.
template <int n>
__device__ __forceinline__ void end_products(float (&sum)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}
template <int n>
__device__ __forceinline__ void begin_products(float (&sum)[n]) {
  end_products(sum);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int n>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory");
}

)cuda";

/// sum += a b by wgmma for `columns` columns. Registers of a lane: of 8 columns at a time, 2
/// neighbours in row lane / 4, and 2 in the row 8 further down.
std::string group_product(const std::string& name, const std::string& type, bool turns,
                          int columns) {
  const int sums = columns / 2, depth = turns ? 16 : 32;
  std::string registers, constraints;
  for (int i = 0; i < sums; ++i) {
    const std::string number = std::to_string(i);
    registers += (i > 0 ? ", %" : "%") + number;
    if (i % 16 == 15 && i + 1 < sums) registers += "\"\n      \"";
    constraints += (i == 0       ? ""
                    : i % 5 == 0 ? ",\n        "
                                 : ", ") +
                   ("\"+f\"(sum[" + number + "])");
  }
  const auto operand = [&](int i) { return "%" + std::to_string(sums + i); };
  return (turns ? "template <int turns_a, int turns_b>\n" : "") +
         ("__device__ __forceinline__ void multiply_add_group_" + name + "(float (&sum)[") +
         std::to_string(sums) +
         "],\n    unsigned long long a, unsigned long long b) {\n"
         "  asm volatile(\n"
         "      \"{\\n.reg .pred p;\\nsetp.ne.b32 p, 1, 0;\\n\"\n"
         "      \"wgmma.mma_async.sync.aligned.m64n" +
         std::to_string(columns) + "k" + std::to_string(depth) + ".f32." + type + "." + type +
         " {\"\n      \"" + registers + "}, \"\n      \"" + operand(0) + ", " + operand(1) +
         ", p, 1, 1" + (turns ? ", " + operand(2) + ", " + operand(3) : "") +
         ";\\n}\"\n      : " + constraints + "\n      : \"l\"(a), \"l\"(b)" +
         (turns ? ", \"n\"(turns_a), \"n\"(turns_b)" : "") + "\n      : \"memory\");\n}\n\n";
}

std::string group_products(const std::string& name, const std::string& type, bool turns) {
  return "// sum += a b for matrices of 64 rows that `matrix` describes" +
         std::string(turns ? "; one that is turned lies along its rows or columns.\n" : ".\n") +
         group_product(name, type, turns, 128) + group_product(name, type, turns, 256);
}

constexpr std::string_view descriptors =
    R"cuda(// Describes to wgmma a matrix in shared memory that is swizzled by 128 bytes (PTX ISA, matrix
// descriptor format): bits 0-13 are its beginning, 16-29 the bytes from 64 rows or columns to the
// next where these lie inside, 32-45 those from 8 lines of 128 bytes to the next, and 62-63 the
// swizzle, all bytes in units of 16.
__device__ __forceinline__ u64 matrix(const unsigned char* begin, u32 leading) {
  return u64(shared_address(begin) >> 4 & 0x3FFFu) | u64(leading >> 4) << 16 |
         u64(1024u >> 4) << 32 | 1ull << 62;
}

)cuda";

constexpr std::string_view elements = R"cuda(using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

// Elements that are stored but not computed with.
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
struct f8e4m3 {
  u8 bits;
};
struct f8e5m2 {
  u8 bits;
};
struct boolean {
  u8 value;
};

// As a type to compute with.
template <class T>
__device__ __forceinline__ T wide(T x) {
  return x;
}
__device__ __forceinline__ float wide(f16 x) { return float_of_f16(x.bits); }
__device__ __forceinline__ float wide(bf16 x) { return __uint_as_float(u32(x.bits) << 16); }
__device__ __forceinline__ int wide(boolean x) { return x.value != 0; }

// A float from which rounding to fewer bits gives what rounding x itself would: what is cut off
// leaves its trace in the last bit.
__device__ __forceinline__ float to_odd(double x) {
  const float cut = __double2float_rz(x);
  return double(cut) == x || x != x ? cut : __uint_as_float(__float_as_uint(cut) | 1u);
}
__device__ __forceinline__ float to_odd(float x) { return x; }
template <class T>
__device__ __forceinline__ float to_odd(T x) {
  return to_odd(double(x));
}

// Toward zero; the nearest limit where out of range; 0 for NaN.
template <class To, class From>
__device__ __forceinline__ To truncated(From x, From low, From beyond, To least, To most) {
  return x != x ? To(0) : x < low ? least : x >= beyond ? most : To(x);
}

template <class To>
struct Narrow {
  template <class From>
  static __device__ __forceinline__ To of(From x) {
    return To(x);
  }
};
template <>
struct Narrow<f16> {
  template <class From>
  static __device__ __forceinline__ f16 of(From x) {
    return {f16_bits(to_odd(x))};
  }
};
template <>
struct Narrow<bf16> {
  template <class From>
  static __device__ __forceinline__ bf16 of(From x) {
    return {bf16_bits(to_odd(x))};
  }
};
template <>
struct Narrow<boolean> {
  template <class From>
  static __device__ __forceinline__ boolean of(From x) {
    return {u8(x != From(0))};
  }
};
template <class To>
struct Whole {  // integers, of floats as of integers
  template <class From>
  static __device__ __forceinline__ To of(From x) {
    return To(x);
  }
  static __device__ __forceinline__ To of(float x) { return of(double(x)); }
  static __device__ __forceinline__ To of(double x) {
    constexpr double size = sizeof(To) == 8 ? 0x1p64 : sizeof(To) == 4 ? 0x1p32 : 0x1p8;
    constexpr double low = sizeof(To) == 1 ? 0.0 : -size / 2;
    constexpr To least = sizeof(To) == 1 ? To(0) : To(1ull << (8 * sizeof(To) - 1));
    return truncated<To, double>(x, low, low + size, least, To(~least));
  }
};
template <>
struct Narrow<i64> : Whole<i64> {};
template <>
struct Narrow<i32> : Whole<i32> {};
template <>
struct Narrow<u8> : Whole<u8> {};

// An element as another type.
template <class To, class From>
__device__ __forceinline__ To as(From x) {
  return Narrow<To>::of(wide(x));
}

// The smaller and the larger; NaN if there is one.
template <class T>
__device__ __forceinline__ T least(T a, T b) {
  return a != a || a < b ? a : b;
}
template <class T>
__device__ __forceinline__ T greatest(T a, T b) {
  return a != a || a > b ? a : b;
}

)cuda";

constexpr std::string_view matrices =
    R"cuda(// Two matrices for each of two neighbouring blocks of columns.
template <class T>
__device__ __forceinline__ void load_matrices(u32 (&r)[2], u32 (&s)[2], const T* row) {
  u32 both[4];
  load_matrices(both, row);
  r[0] = both[0], r[1] = both[1], s[0] = both[2], s[1] = both[3];
}
template <class T>
__device__ __forceinline__ void load_matrices_turned(u32 (&r)[2], u32 (&s)[2], const T* row) {
  u32 both[4];
  load_matrices_turned(both, row);
  r[0] = both[0], r[1] = both[1], s[0] = both[2], s[1] = both[3];
}

)cuda";

/// What attention wants beside matrices; a host replaces it.
constexpr std::string_view attention =
    R"cuda(// The shared memory that a launch gives each block.
template <class T>
__device__ __forceinline__ T& shared_tiles() {
  extern __shared__ __align__(16) unsigned char tiles_memory[];
  return *reinterpret_cast<T*>(tiles_memory);
}

// 2 to the power of x, to 2 units in the last place; 0 where that is below the normal numbers.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two neighbours as the matrices have them.
__device__ __forceinline__ unsigned packed_bf16(float low, float high) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
__device__ __forceinline__ unsigned packed_f16(float low, float high) {
  unsigned bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

)cuda";

constexpr std::string_view small_floats = R"cuda(// 8-bit floats of OCP's OFP8 specification.
template <int exponent_bits, int mantissa_bits, bool has_infinity>
struct SmallFloat {
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr int shift = 23 - mantissa_bits;
  static constexpr u32 mantissa_mask = (1u << mantissa_bits) - 1;
  static constexpr u32 magnitude_mask = 0x7fu;
  static constexpr u32 first_special =
      has_infinity ? magnitude_mask - mantissa_mask : magnitude_mask;
  static constexpr u32 overflow = first_special - (has_infinity ? 0u : 1u);

  // To nearest even; too large a number becomes infinity, or the largest where there is none.
  static __device__ __forceinline__ u8 bits_of(float x) {
    const u32 bits = __float_as_uint(x), magnitude = bits & 0x7fffffffu;
    const u32 rebias = u32(127 - bias) << 23, smallest_normal = rebias + (1u << 23);
    const u32 rebiased = magnitude - rebias;
    u32 result = (rebiased + ((1u << (shift - 1)) - 1) + ((rebiased >> shift) & 1)) >> shift;
    if (magnitude < smallest_normal) {
      // The anchor's last place is the smallest subnormal: the addition rounds.
      const u32 anchor = u32(128 - bias + shift) << 23;
      result =
          __float_as_uint(__fadd_rn(__uint_as_float(magnitude), __uint_as_float(anchor))) - anchor;
    }
    if (result > overflow) result = overflow;
    if (magnitude > 0x7f800000u)
      result = first_special | (1u << (mantissa_bits - 1)) | ((magnitude >> shift) & mantissa_mask);
    return u8(result | bits >> 31 << 7);
  }
  static __device__ __forceinline__ float value_of(u8 bits) {
    const u32 magnitude = bits & magnitude_mask, sign = u32(bits >> 7) << 31;
    if (magnitude > first_special || (!has_infinity && magnitude == first_special))
      return __uint_as_float(0x7fc00000u | sign);
    if (magnitude == first_special) return __uint_as_float(0x7f800000u | sign);
    // A number of the same bits in the format of floats, scaled: exact.
    const float scale = __uint_as_float(u32(254 - bias) << 23);
    return __uint_as_float(__float_as_uint(__uint_as_float(magnitude << shift) * scale) | sign);
  }
};
using E4M3 = SmallFloat<4, 3, false>;
using E5M2 = SmallFloat<5, 2, true>;
__device__ __forceinline__ float wide(f8e4m3 x) { return E4M3::value_of(x.bits); }
__device__ __forceinline__ float wide(f8e5m2 x) { return E5M2::value_of(x.bits); }
template <>
struct Narrow<f8e4m3> {
  template <class From>
  static __device__ __forceinline__ f8e4m3 of(From x) {
    return {E4M3::bits_of(to_odd(x))};
  }
};
template <>
struct Narrow<f8e5m2> {
  template <class From>
  static __device__ __forceinline__ f8e5m2 of(From x) {
    return {E5M2::bits_of(to_odd(x))};
  }
};

)cuda";

constexpr std::string_view integers = R"cuda(// Integer arithmetic wraps.
__device__ __forceinline__ i64 plus(i64 a, i64 b) { return i64(u64(a) + u64(b)); }
__device__ __forceinline__ i64 minus(i64 a, i64 b) { return i64(u64(a) - u64(b)); }
__device__ __forceinline__ i64 times(i64 a, i64 b) { return i64(u64(a) * u64(b)); }
__device__ __forceinline__ i64 absolute(i64 a) { return a < 0 ? minus(0, a) : a; }
__device__ inline i64 power(i64 base, i64 exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  u64 result = 1;
  for (u64 factor = u64(base); exponent > 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return i64(result);
}

)cuda";

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
    R"cuda(// Whether a position lies in its axis; if not, the first to find out says so.
struct Fault {
  u64 happened;
  i64 position, size;
};
__device__ inline bool is_inside(i64 position, i64 size, Fault* fault) {
  if (u64(position) < u64(size)) return true;
  if (atomicCAS(&fault->happened, 0ull, 1ull) == 0) {
    fault->position = position;
    fault->size = size;
  }
  return false;
}

)cuda";

constexpr std::string_view combining =
    R"cuda(// The combination of the values of `lanes` neighbouring threads, a power of two.
// `memory` has an element for each warp; up to 32 lanes need none.
template <class C>
__device__ __forceinline__ Shared<C>* no_memory() {
  return nullptr;
}
template <int lanes, class C, class F>
__device__ __forceinline__ C combine_lanes(C value, Shared<C>* memory, F combine) {
#pragma unroll
  for (int step = lanes < 32 ? lanes / 2 : 16; step > 0; step /= 2) {
    value = combine(value, C(__shfl_xor_sync(0xffffffffu, value, step)));
  }
  if (lanes > 32) {
    constexpr int warps = lanes > 32 ? lanes / 32 : 1;
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) memory[warp] = value;
    __syncthreads();
    const int first = warp / warps * warps;
    value = memory[first];
#pragma unroll
    for (int w = 1; w < warps; ++w) value = combine(value, C(memory[first + w]));
  }
  return value;
}
// The same for threads `step` apart; the result is that of the first of them. `memory` has an
// element for each thread.
template <int lanes, int step, class C, class F>
__device__ __forceinline__ C combine_rows(C value, Shared<C>* memory, F combine) {
  const int thread = threadIdx.x;
  memory[thread] = value;
  __syncthreads();
#pragma unroll
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (thread / step < half) {
      value = combine(value, C(memory[thread + half * step]));
      memory[thread] = value;
    }
    __syncthreads();
  }
  return value;
}

)cuda";

constexpr std::string_view scanning =
    R"cuda(// The combination of the values of all threads up to this one; memory[0] has them all.
template <class C, int threads, class F>
__device__ __forceinline__ C scan_block(C value, Shared<C> (&memory)[2][threads], F combine) {
  const int thread = threadIdx.x;
  int now = 0;
  memory[0][thread] = value;
  __syncthreads();
#pragma unroll
  for (int step = 1; step < threads; step *= 2) {
    if (thread >= step) value = combine(C(memory[now][thread - step]), value);
    now ^= 1;
    memory[now][thread] = value;
    __syncthreads();
  }
  static_assert(threads == 256, "an even number of steps ends in the first half");
  return value;
}

)cuda";

constexpr std::string_view randoms =
    R"cuda(// Philox4x32-10 (Salmon et al., SC'11). Number `index` of the stream (seed, stream), a
// multiple of 2^-53 in [0, 1).
__device__ inline double uniform(u64 seed, u64 stream, u64 index) {
  const u64 block = index / 2;
  u32 c0 = u32(block), c1 = u32(block >> 32), c2 = u32(stream), c3 = u32(stream >> 32);
  u32 k0 = u32(seed), k1 = u32(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 product0 = u64(0xD2511F53u) * c0, product1 = u64(0xCD9E8D57u) * c2;
    c0 = u32(product1 >> 32) ^ c1 ^ k0;
    c2 = u32(product0 >> 32) ^ c3 ^ k1;
    c1 = u32(product1);
    c3 = u32(product0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const u64 bits = index % 2 ? u64(c3) << 32 | c2 : u64(c1) << 32 | c0;
  return double(bits >> 11) * 0x1p-53;
}

// The quantile of the normal distribution: Wichura's PPND16 (AS 241). Each operation rounds by
// itself, as on every other machine; none is fused.
__device__ inline double horner(const double* coefficients, int n, double x) {
  double sum = coefficients[0];
  for (int i = 1; i < n; ++i) sum = __dadd_rn(__dmul_rn(sum, x), coefficients[i]);
  return sum;
}
__device__ inline double ratio(const double* above, const double* below, double factor, double x) {
  return __ddiv_rn(__dmul_rn(factor, horner(above, 8, x)), horner(below, 8, x));
}
// -ln(x 2^-scale), x not near 1.
__device__ inline double minus_log(double x, double scale) {
  constexpr double series[] = {2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11,
                               2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3,  2.0};
  const u64 bits = u64(__double_as_longlong(x)) - 0x3FE6A09E667F3BCDull + 0x3FF0000000000000ull;
  const double m =
      __longlong_as_double(i64((bits & 0x000FFFFFFFFFFFFFull) + 0x3FE6A09E667F3BCDull));
  const double e = double(i64(bits >> 52)) - 1023.0 - scale;
  const double s = __ddiv_rn(m - 1.0, m + 1.0);
  const double low = __dadd_rn(__dmul_rn(e, 0x1.a39ef35793c76p-33),
                               __dmul_rn(s, horner(series, 11, __dmul_rn(s, s))));
  return -__dadd_rn(__dmul_rn(e, 0x1.62e42feep-1), low);
}
// At p, given q = p - 1/2 and tail = min(p, 1 - p) times 2^scale.
__device__ inline double quantile(double q, double tail, double scale) {
  if (fabs(q) <= 0.425) {
    constexpr double above[] = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                                6.7265770927008700853e+4, 4.5921953931549871457e+4,
                                1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                1.3314166789178437745e+2, 3.3871328727963666080e+0};
    constexpr double below[] = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                4.2313330701600911252e+1, 1.0};
    return ratio(above, below, q, __dadd_rn(0.180625, -__dmul_rn(q, q)));
  }
  const double r = __dsqrt_rn(minus_log(tail, scale));
  double result;
  if (r <= 5.0) {
    constexpr double above[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                2.41780725177450611770e-1, 1.27045825245236838258e+0,
                                3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                4.63033784615654529590e+0, 1.42343711074968357734e+0};
    constexpr double below[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                2.05319162663775882187e+0, 1.0};
    result = ratio(above, below, 1.0, r - 1.6);
  } else {
    constexpr double above[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                                1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                2.96560571828504891230e-1, 1.78482653991729133580e+0,
                                5.46378491116411436990e+0, 6.65790464350110377720e+0};
    constexpr double below[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                1.48753612908506148525e-2,  1.36929880922735805310e-1,
                                5.99832206555887937690e-1,  1.0};
    result = ratio(above, below, 1.0, r - 5.0);
  }
  return copysign(result, q);
}
// The normal deviate of the same number of the uniform stream.
__device__ inline double normal(u64 seed, u64 stream, u64 index) {
  const double q = (uniform(seed, stream, index) - 0.5) + 0x1p-54;
  return quantile(q, 0.5 - fabs(q), 0.0);
}
__device__ inline double normal_quantile(double p) {
  if (p != p) return p;
  p = p < 0x1p-1074 ? 0x1p-1074 : p > 1.0 - 0x1p-53 ? 1.0 - 0x1p-53 : p;
  const double q = p - 0.5, tail = q < 0.0 ? p : 1.0 - p;
  return tail < 0x1p-1000 ? quantile(q, tail * 0x1p60, 60.0) : quantile(q, tail, 0.0);
}

)cuda";

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
__device__ __forceinline__ u32 key_of(u8 x) { return x; }

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

/// A section is there if one of its words is.
struct Section {
  std::string text;
  std::vector<std::string_view> words;
  bool is_portable = true;
};

const std::vector<Section>& sections() {
  static const std::vector<Section> all{
      {std::string(machine), {""}, false},
      {std::string(tensor_cores), {"multiply_add_"}, false},
      {warp_product("bf16", "bf16", 16), {"multiply_add_bf16"}, false},
      {warp_product("f16", "f16", 16), {"multiply_add_f16"}, false},
      {warp_product("tf32", "tf32", 8), {"multiply_add_tf32"}, false},
      {warp_product("f8e4m3", "e4m3", 32), {"multiply_add_f8e4m3"}, false},
      {warp_product("f8e5m2", "e5m2", 32), {"multiply_add_f8e5m2"}, false},
      {std::string(hopper), {"multiply_add_group_"}, false},
      {group_products("bf16", "bf16", true), {"multiply_add_group_bf16"}, false},
      {group_products("f16", "f16", true), {"multiply_add_group_f16"}, false},
      {group_products("f8e4m3", "e4m3", false), {"multiply_add_group_f8e4m3"}, false},
      {group_products("f8e5m2", "e5m2", false), {"multiply_add_group_f8e5m2"}, false},
      {std::string(elements), {""}},
      {std::string(matrices), {"multiply_add_"}},
      {std::string(attention), {"shared_tiles<"}, false},
      {std::string(descriptors), {"multiply_add_group_"}},
      {std::string(small_floats), {"f8e"}},
      {std::string(integers), {"plus(", "minus(", "times(", "absolute(", "power("}},
      {std::string(packs), {"load(", "store("}},
      {std::string(tables), {"Table<"}},
      {std::string(faults), {"Fault"}},
      {std::string(combining), {"combine_lanes", "combine_rows"}},
      {std::string(scanning), {"scan_block"}},
      {std::string(randoms), {"uniform(", "normal(", "normal_quantile("}},
      {std::string(sorting), {"sorted<", "key_of(", "Entry<"}},
  };
  return all;
}

}  // namespace

std::string vocabulary_for(std::string_view kernel) {
  std::string text;
  for (const Section& section : sections()) {
    const bool is_needed = std::any_of(
        section.words.begin(), section.words.end(),
        [&](std::string_view word) { return kernel.find(word) != std::string_view::npos; });
    if (is_needed) text += section.text;
  }
  return text;
}

std::string vocabulary() {
  std::string text;
  for (const Section& section : sections()) text += section.text;
  return text;
}

std::string portable_vocabulary() {
  std::string text;
  for (const Section& section : sections()) {
    if (section.is_portable) text += section.text;
  }
  return text;
}

}  // namespace ein::codegen
