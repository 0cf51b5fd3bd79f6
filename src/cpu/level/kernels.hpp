// What the sources of an instruction set's kernels share, and what its tables are made of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu/level.hpp"

#ifndef EIN_LEVEL
#error \
    "EIN_LEVEL is the name of the instruction set that this is compiled for: see cmake/kernels.cmake"
#endif

namespace ein::host::EIN_LEVEL {

/// That the compiler was given.
inline constexpr Isa isa =
#if defined(__aarch64__)
    Isa::neon;
#elif defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && \
    defined(__AVX512CD__) && defined(__AVX512DQ__)
#if defined(__AMX_BF16__) && defined(__AMX_TILE__)
    Isa::v4_amx;
#elif defined(__AVX512BF16__)
    Isa::v4_bf16;
#else
    Isa::v4;
#endif
#elif defined(__AVX2__) && defined(__FMA__) && defined(__BMI2__)
    Isa::v3;
#elif defined(__SSE4_2__)
    Isa::v2;
#else
    Isa::baseline;
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__)
inline constexpr int vector_bytes = 64, vector_registers = 32;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32, vector_registers = 16;
#elif defined(__aarch64__)
inline constexpr int vector_bytes = 16, vector_registers = 32;
#else
inline constexpr int vector_bytes = 16, vector_registers = 16;
#endif

/// See Level.
inline constexpr int widest_copied_element = std::max(16, vector_bytes / 2);
const CopyKernels& copy_kernels(std::int64_t element_bytes);
BoxKernel copy_runs_kernel(std::int64_t run);
BoxKernel streaming_runs_kernel(std::int64_t run);
BoxKernel copy_rows_kernel(bool streaming);
void fetch_row_ends(std::byte* dst, const std::byte* src, const CopyBox& box);
void fetch_rows(const std::byte* src, std::int64_t distance, std::int64_t rows, std::int64_t stride,
                std::int64_t bytes);
void finish_streaming();

template <class C>
C dot(const C* a, const C* b, std::int64_t n);
template <class C>
bool small_product(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                   bool accumulate);
template <class C>
void eigen_product(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                   bool accumulate);
template <class C>
void blocked_product(const Caches& caches, const MatrixRef<C>& c, const MatrixRef<const C>& a,
                     const MatrixRef<const C>& b, bool accumulate, const Finish& finish);
template <class C>
void tiny_products(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                   const std::int64_t (&steps)[3], std::int64_t count);
/// c = a · b, or c += a · b. (C, In) are (float, float), (double, double), (float, bf16) or
/// (bf16, bf16); the last cannot be accumulated to.
template <class C, class In>
void few_rows_product(const Caches& caches, const MatrixRef<C>& c, const MatrixRef<const In>& a,
                      const MatrixRef<const In>& b, bool accumulate, const Finish& finish);

/// The same by AMX, where there is any; In is bf16.
template <class C>
void few_rows_product_in_tiles(const Caches& caches, const MatrixRef<C>& c,
                               const MatrixRef<const bf16>& a, const MatrixRef<const bf16>& b,
                               bool accumulate, const Finish& finish);

template <class C>
void apply(ScalarOp op, const C* a, const C* b, const C* c, C* out, std::size_t n);
void apply_short_form(ScalarOp op, const float* a, float* out, std::size_t n);
template <class C>
void apply_by_rows(ScalarOp op, RowArgument<C> (&args)[3], int arity, C* out, std::size_t rows,
                   std::size_t row, C* spare);
template <class C>
void combine_strips(Combine combine, const C* values, std::int64_t step, std::size_t n,
                    std::int64_t count, C* results);
template <class C>
void load_elements(const void* src, DType from, std::ptrdiff_t stride, C* dst, std::size_t n);
template <class C>
void store_elements(const C* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride);

void fill_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_index,
                  std::size_t n, double* out);
void fill_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_index, std::size_t n,
                 double* out);

template <class C>
double multiply_add(std::int64_t steps);
std::uint64_t checksum(const std::byte* from, std::size_t bytes);
/// The compiler must compute it.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "m"(value) : "memory");
}

}  // namespace ein::host::EIN_LEVEL
