// LoopNest: what a backend runs. Loops over elementary axes, affine accesses, one scalar expression.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ein/graph.hpp>

namespace ein {

/// For each point of the kept axes: evaluates `body` at each point of the reduced axes, combines the
/// values (there is just one where nothing is reduced), applies `epilogue` and stores the result.
struct LoopNest {
  struct NestAxis {
    std::string name;
    std::int64_t size = 0;
    bool reduced = false;
  };
  /// An operand's elements lie at offset + Σ strides[a] · index_a, in elements of its buffer.
  struct Operand {
    int buffer = 0;
    DType dtype = DType::f32;
    std::int64_t offset = 0;
    std::vector<std::int64_t> strides{};  // one per axis
  };
  std::vector<NestAxis> axes;
  std::vector<Operand> inputs;
  Operand output;                  // strides of reduced axes are 0
  ScalarExpr body;                 // of the inputs
  std::optional<Combine> combine;  // none: no axis is reduced
  ScalarExpr epilogue;             // of the combined value, input 0; empty for the value itself
  DType compute = DType::f32;      // f64, f32 or i64: the type of every step and of the combination

  bool is_copy() const;      // the body is its one input, and nothing is combined
  bool is_contraction() const;  // the body is the product of its two inputs, combined by sum
};

/// Merges neighbouring axes that every operand walks as one, and drops axes of size 1. A nest whose
/// expressions use an axis index or a random position is left as it is.
void simplify(LoopNest& nest);

/// A compiled graph: nests in order, over numbered buffers.
struct Program {
  /// Buffer i is input i for the first `input_count`; the others are allocated for a run.
  struct Buffer {
    std::int64_t elements = 0;
    DType dtype = DType::f32;
  };
  /// A result is a view of a buffer, maybe of an input's.
  struct Result {
    int buffer = 0;
    DType dtype = DType::f32;
    Shape shape;
    Strides strides;
    std::int64_t offset = 0;
  };
  std::size_t input_count = 0;
  std::vector<Buffer> buffers;
  std::vector<LoopNest> nests;
  std::vector<Result> results;
};

std::string to_string(const LoopNest& nest);
std::string to_string(const Program& program);

}  // namespace ein
