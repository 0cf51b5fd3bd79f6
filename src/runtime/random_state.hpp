// The place in the sequence of random streams.
#pragma once

#include <cstdint>

#include "nest/nest.hpp"

namespace ein::engine {

/// The leaf of an expression that draws from the next random stream; while a function is traced, from the next
/// of each run.
Ex next_random(ScalarOp distribution);

/// Takes the next `count` streams: the seed, and the number of the first.
RandomOrigin take_streams(std::uint64_t count);

}  // namespace ein::engine
