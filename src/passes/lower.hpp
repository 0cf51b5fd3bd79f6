// From a graph to loop nests over buffers.
#pragma once

#include <optional>
#include <span>

#include "nest/nest.hpp"

namespace ein {

/// Where an input's elements lie in its buffer, in elements.
struct InputLayout {
  Strides strides;
  Size offset = 0;
};

/// Of memory, up to the last that a tensor which lies like this has.
Size elements_up_to_last(const Shape& shape, const InputLayout& layout);

/// What copies the elements of one view of a buffer to another, of the same shape.
LoopNest copy_nest(const Program::Result& from, const Program::Result& to);

/// Where the result of `op`, a reindex, lies if it is a view of an input that lies as `from` says;
/// none when its result needs other strides.
std::optional<InputLayout> view_of(const Op& op, const InputLayout& from);

/// Lowers `graph` (contractions of at most two operands) for inputs that lie as given. A reindex
/// that strides can express costs nothing. A map is computed inside the one operation that uses it,
/// if that computes each element once; a map of a reduction's result becomes the reduction's
/// epilogue.
Program lower(const Graph& graph, std::span<const InputLayout> inputs);

}  // namespace ein
