// Row code: expressions over the rows of some operands, compiled at run time to vector instructions of this processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "nest/nest.hpp"

namespace ein::host {

/// For each of some rows, one after the other: what several nests compute there, in order, in f32. Nests may read at a
/// place what others wrote there before.
struct RowProgram {
  /// Where an operand's elements lie. Operands that touch the same memory are the same place.
  struct Place {
    DType dtype = DType::f32;
    std::int64_t step = 0;      // from element to element of a row: 0 or 1, or 2 to read every other
    std::int64_t row_step = 0;  // in elements
    bool is_kept = true;        // whether what is written is read later by others
    bool streams = false;       // f32 written past the caches: all vectors of its rows lie on 64-byte lines
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Nest {
    std::vector<std::size_t> inputs{};  // places
    std::size_t output = 0;
    ScalarExpr body;
    std::optional<Combine> combine{};  // sum, prod, max or min of the row: one value, stored where the output's row begins
    ScalarExpr epilogue{};             // as in LoopNest
    bool is_scalar = false;            // one value for each row, from one value of each input
  };
  std::vector<Place> places;
  std::vector<Nest> nests;
  std::int64_t length = 0;                 // the most elements of a row
  std::optional<std::size_t> row_axis{};   // whose indices move with the rows
  std::optional<std::size_t> along_axis{};  // and along a row
};

/// Rows longer than this are not combined: sums in f32 would lose too much.
inline constexpr std::int64_t longest_combined_row = 65536;

class RowCode {
 public:
  struct Call {
    std::byte** places;         // addresses of the first row; changed by the call
    std::int64_t length, rows;  // both at least 1
    const std::int64_t* index;  // the first value of each axis index
  };
  RowCode(const RowCode&) = delete;
  RowCode& operator=(const RowCode&) = delete;
  ~RowCode();

  void operator()(const Call& call) const { function_(&call); }

  /// Why there is no code here at all: the processor, or how ein was built; empty where there is.
  static std::string_view missing();
  /// Whether elements `step` apart can be read along a row.
  static bool can_step(DType dtype, std::int64_t step) { return step == 0 || step == 1 || (step == 2 && dtype == DType::f32); }
  static bool can_combine(Combine combine) {
    switch (combine) {
      case Combine::sum:
      case Combine::prod:
      case Combine::max:
      case Combine::min: return true;
      case Combine::any:
      case Combine::all: return false;
    }
    return false;
  }
  /// None where all code is missing(), or the program has what the code has not:
  /// random numbers, powers, dtypes other than f32, bf16, f16 and (read) i32, u8, bool.
  static std::unique_ptr<const RowCode> compile(const RowProgram& program);

 private:
  explicit RowCode(void (*function)(const Call*)) : function_(function) {}
  void (*function_)(const Call*);
};

}  // namespace ein::host
