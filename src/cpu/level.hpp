// Level: the kernels that are compiled ahead, once for each instruction set, and which of them run.
//
// Their sources are those of src/cpu/level/, in a namespace of their own for each instruction set.
// All else is plain code of the architecture, and reaches them through level() alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include <ein/dtype.hpp>
#include "cpu/copy_kernels.hpp"
#include "cpu/gemm.hpp"
#include "cpu/strip_loops.hpp"
#include "machine/cache.hpp"
#include "machine/processor.hpp"
#include "nest/combine.hpp"
#include "nest/nest.hpp"

namespace ein::host {

/// The kernels of one instruction set.
struct Level {
  Isa isa;  // that the compiler was given
  /// What the compiler was allowed to use, by its names, and a null pointer; empty texts between.
  const char* const* features;
  int vector_bytes;
  bool has_multiply_add;  // in one instruction

  struct Copies {
    /// The widest cell, a power of two bytes, that `kernels` is for.
    int widest_element;
    const CopyKernels& (*kernels)(std::int64_t element_bytes);
    /// For larger cells, and those of other sizes.
    BoxKernel (*runs)(std::int64_t run);
    /// The same with streaming stores, which go around the caches.
    BoxKernel (*streaming_runs)(std::int64_t run);
    /// Of any lengths, known only when it runs.
    BoxKernel (*rows)(bool streaming);
    /// Prefetches, to be written, the lines that a row of `run` bytes covers only in part.
    BoxKernel fetch_row_ends;
    /// Prefetches what lies `distance` from `rows` rows of `bytes` bytes, which may be outside of
    /// any array.
    void (*fetch_rows)(const std::byte* src, std::int64_t distance, std::int64_t rows,
                       std::int64_t stride, std::int64_t bytes);
    /// Streaming stores are weakly ordered; this makes them visible before what the caller stores
    /// next.
    void (*finish_streaming)();
  } copies;

  /// Matrix products: see gemm.hpp. C is float, double or std::uint64_t.
  template <class C>
  struct Products {
    C (*dot)(const C* a, const C* b, std::int64_t n);
    /// Computes a small product of matrices that need no preparation; false for any other.
    bool (*small)(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                  bool accumulate);
    /// By Eigen, of matrices that have a unit stride each.
    void (*eigen)(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                  bool accumulate);
    /// In blocks that stay in the caches, of any strides, on the pool's threads too. None of
    /// integers.
    void (*blocked)(const Caches& caches, const MatrixRef<C>& c, const MatrixRef<const C>& a,
                    const MatrixRef<const C>& b, bool accumulate, const Finish& finish);
    /// Where c has few rows: has_few_rows(c, b). None of integers.
    void (*few_rows)(const Caches& caches, const MatrixRef<C>& c, const MatrixRef<const C>& a,
                     const MatrixRef<const C>& b, bool accumulate, const Finish& finish);
    /// Of many tiny matrices: see gemm.hpp. None of integers.
    void (*tiny)(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                 const std::int64_t (&steps)[3], std::int64_t count);
  };
  Products<float> f32_products;
  Products<double> f64_products;
  Products<std::uint64_t> integer_products;
  /// Loops over a strip: see strip.hpp, strip_loops.hpp and convert.hpp.
  template <class C>
  struct Strips {
    decltype(host::apply<C>)* apply;
    decltype(host::apply_by_rows<C>)* apply_by_rows;
    decltype(host::combine_strips<C>)* combine_strips;
    void (*load_as)(const void* src, DType from, std::ptrdiff_t stride, C* dst, std::size_t n);
    void (*store_from)(const C* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride);
  };
  /// Of functions in their short forms (short_forms.hpp).
  void (*apply_short_form)(ScalarOp op, const float* a, float* out, std::size_t n);
  std::tuple<Strips<float>, Strips<double>, Strips<std::int8_t>, Strips<std::int16_t>,
             Strips<std::int32_t>, Strips<std::int64_t>, Strips<std::uint64_t>>
      all_strips;

  /// See nest/random.hpp.
  void (*fill_uniform)(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_index,
                       std::size_t n, double* out);
  void (*fill_normal)(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_index,
                      std::size_t n, double* out);

  /// Multiplies and adds `steps` times in independent chains; the result says how many
  /// floating-point operations that was.
  double (*multiply_add_f32)(std::int64_t steps);
  double (*multiply_add_f64)(std::int64_t steps);
  /// Reads memory.
  std::uint64_t (*checksum)(const std::byte* from, std::size_t bytes);

  template <class C>
  const Products<C>& products() const {
    if constexpr (std::is_same_v<C, float>)
      return f32_products;
    else if constexpr (std::is_same_v<C, double>)
      return f64_products;
    else
      return integer_products;
  }
  template <class C>
  const Strips<C>& strips() const {
    return std::get<Strips<C>>(all_strips);
  }
};

/// Those that run here: the best of this processor that EIN_ISA allows, chosen once. Throws what
/// isa() does, and an Error (`device`) where the library was compiled for another processor alone.
const Level& level();
/// All of this build that this processor can run, the lowest first.
std::vector<const Level*> levels_here();

/// Matrix products of bf16 in one instruction set.
struct Bf16Products {
  Isa isa;  // that the compiler was given
  /// Where c has few rows: has_few_rows(c, b). Null pointers where those of a lower instruction set
  /// are as good.
  struct FewRows {
    void (*to_f32)(const Caches& caches, const MatrixRef<float>& c, const MatrixRef<const bf16>& a,
                   const MatrixRef<const bf16>& b, bool accumulate, const Finish& finish);
    void (*to_bf16)(const Caches& caches, const MatrixRef<bf16>& c, const MatrixRef<const bf16>& a,
                    const MatrixRef<const bf16>& b, bool accumulate, const Finish& finish);
  } few_rows;
  /// The same by tiles that hold most_few_rows. Null pointers where there are none.
  FewRows few_rows_in_tiles;
  /// Of any, by instructions that multiply pairs of bf16. A null pointer where there are none.
  struct InPairs {
    void (*to_f32)(const MatrixRef<float>& c, const MatrixRef<const bf16>& a,
                   const MatrixRef<const bf16>& b, bool accumulate, const Finish& finish);
    void (*to_bf16)(const MatrixRef<bf16>& c, const MatrixRef<const bf16>& a,
                    const MatrixRef<const bf16>& b, bool accumulate, const Finish& finish);
    /// As Level::multiply_add_f32.
    double (*multiply_add)(std::int64_t steps);
  };
  const InPairs* in_pairs;
};
/// Those that run here. Their instruction set may be a higher one than that of level().
const Bf16Products& bf16_products();

}  // namespace ein::host
