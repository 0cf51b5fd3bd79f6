// Tensor cores as warps use them (mma.sync), and the shared memory that they read.
#include "codegen/vocabulary/text.hpp"

namespace ein::codegen::text {

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

}  // namespace ein::codegen::text
