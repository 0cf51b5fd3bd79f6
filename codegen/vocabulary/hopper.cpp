// Hopper's tensor cores, as groups of four warps use them (wgmma), and copies of whole tiles.
#include "codegen/vocabulary/text.hpp"

namespace ein::codegen::text {

constexpr std::string_view hopper =
    R"cuda(// Barriers in shared memory (mbarrier).
// A phase ends when all have arrived, and all bytes.
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
struct alignas(128) TensorMap {
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

namespace {

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

}  // namespace

std::string group_products(const std::string& name, const std::string& type, bool turns) {
  return "// sum += a b for matrices of 64 rows that `matrix` describes" +
         std::string(turns ? "; one that is turned lies along its rows or columns.\n" : ".\n") +
         group_product(name, type, turns, 128) + group_product(name, type, turns, 256);
}

constexpr std::string_view descriptors =
    R"cuda(// Describes to wgmma a matrix in shared memory that is swizzled by 128 bytes (PTX ISA,
// matrix descriptor format): bits 0-13 are its beginning, 16-29 the bytes from 64 rows or columns to the
// next where these lie inside, 32-45 those from 8 lines of 128 bytes to the next, and 62-63 the
// swizzle, all bytes in units of 16.
__device__ __forceinline__ u64 matrix(const unsigned char* begin, u32 leading) {
  return u64(shared_address(begin) >> 4 & 0x3FFFu) | u64(leading >> 4) << 16 |
         u64(1024u >> 4) << 32 | 1ull << 62;
}

)cuda";

}  // namespace ein::codegen::text
