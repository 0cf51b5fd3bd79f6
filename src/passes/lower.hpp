// From a graph to loop nests over buffers.
#pragma once

#include <optional>
#include <span>

#include "nest/nest.hpp"

namespace ein {

/// Maps are not fused beyond so many operands: a processor has only so many registers and streams.
inline constexpr std::size_t most_fused_reads = 16;

/// Where an input's elements lie in its buffer, in elements.
struct InputLayout {
  Strides strides;
  std::int64_t offset = 0;
};

/// Where the result of `op`, a reindex, lies if it is a view of an input that lies as `from` says; none when its result
/// needs other strides.
std::optional<InputLayout> view_of(const Op& op, const InputLayout& from);

/// Lowers `graph` (contractions of at most two operands) for inputs that lie as given. A reindex that
/// strides can express costs nothing. A map is computed inside the one operation that uses it, if that
/// computes each element once; a map of a reduction's result becomes the reduction's epilogue.
Program lower(const Graph& graph, std::span<const InputLayout> inputs);

}  // namespace ein
