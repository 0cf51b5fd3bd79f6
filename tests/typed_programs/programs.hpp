// What the programs that scripts/typed-programs writes are made with, and how they are run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/map.hpp>
#include <ein/typed.hpp>
#include <ein/typed_named.hpp>
#include <ein/typed_ops.hpp>
#include <ein/vmap.hpp>

namespace ein::typed_programs {

using Sizes = std::span<const std::int64_t>;  // those that a run chooses: n0, n1, ...
using Tensors = std::span<const Tensor>;

/// A program on typed tensors, and by its side on plain ones. Both append the values of their
/// calls.
struct Program {
  using Half = void (*)(Sizes n, Tensors x, std::vector<Tensor>& out);
  std::uint64_t seed;
  const char* inputs;  // "f32 - n0 3 ...; i64 n0 n1": dtype, limit of positions, sizes
  std::size_t sizes;   // how many a run chooses
  bool may_be_empty;   // whether one may be 0
  bool has_vmap;       // whose vjp may add in another order than that of the calls written out
  Half typed, plain;
};

/// Runs the programs: those of a seed with `--only SEED`. 1 where one is wrong.
int run(int argc, char** argv, std::span<const Program> programs);

// Words of the plain programs.

/// A size: "n1", "3", "n1/2" rounded up, "n0*n1".
std::int64_t size(Sizes n, std::string_view text);
/// x as a rearrangement says; `#` stands for as many 1 as the run has axes under `...`.
Tensor read(const Tensor& x, std::string_view pattern);
/// Some positions of x along a dimension, counted from the last one below 0.
Tensor along(const Tensor& x, int dimension, const Index& index);

}  // namespace ein::typed_programs
