#include "runtime/random_state.hpp"

#include <mutex>
#include <utility>

#include <ein/create.hpp>
#include "runtime/trace.hpp"

namespace ein {
namespace {

struct SharedState {
  std::mutex mutex;
  RandomState value;
};
SharedState& shared_state() {
  static SharedState state;
  return state;
}

}  // namespace

RandomState random_state() {
  SharedState& state = shared_state();
  const std::lock_guard lock(state.mutex);
  return state.value;
}
void set_random_state(RandomState wanted) {
  SharedState& state = shared_state();
  const std::lock_guard lock(state.mutex);
  state.value = wanted;
}
void manual_seed(std::uint64_t seed) { set_random_state({seed, 0}); }

namespace engine {

Ex next_random(ScalarOp distribution) {
  if (Trace* trace = Trace::active()) return Ex::random_of_run(distribution, trace->next_stream());
  const RandomOrigin origin = take_streams(1);
  return Ex::random(distribution, origin.seed, origin.stream);
}

RandomOrigin take_streams(std::uint64_t count) {
  SharedState& state = shared_state();
  const std::lock_guard lock(state.mutex);
  return {state.value.seed, std::exchange(state.value.streams, state.value.streams + count)};
}

}  // namespace engine
}  // namespace ein
