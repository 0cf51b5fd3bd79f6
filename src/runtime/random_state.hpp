// The place in the sequence of random streams.
#pragma once

#include <cstdint>

#include <ein/create.hpp>
#include "nest/nest.hpp"

namespace ein::engine {

/// The leaf of an expression that draws from the next random stream; while a function is traced,
/// from the next of each run.
Ex next_random(ScalarOp distribution);

/// A place in a sequence of random streams: of the process, or of a compiled function's runs.
struct RandomPlace {
  RandomState state;
  bool of_run = false;  // then the seed means nothing, and streams count from the run's first
};
/// Where this thread's next random numbers come from.
RandomPlace random_place();

/// While it lives, this thread's random numbers are those from `place` on; the sequence that others
/// draw from stays where it is.
class RandomReplay {
 public:
  explicit RandomReplay(RandomPlace place);
  ~RandomReplay();
  RandomReplay(const RandomReplay&) = delete;
  RandomReplay& operator=(const RandomReplay&) = delete;

 private:
  RandomPlace place_;
  RandomPlace* outer_;
};

/// Takes the next `count` streams: the seed, and the number of the first.
RandomOrigin take_streams(std::uint64_t count);

}  // namespace ein::engine
