#include "runtime/random_state.hpp"

#include <mutex>
#include <utility>

#include "machine/fork.hpp"
#include "runtime/trace.hpp"

namespace ein {
namespace {

struct SharedState {
  std::mutex mutex;
  RandomState value;
};
SharedState& shared_state() { return made_once_with_lock<SharedState, StaticLock::random_state>(); }

thread_local engine::RandomPlace* replayed = nullptr;

}  // namespace

RandomState random_state() {
  if (replayed) return replayed->state;
  SharedState& state = shared_state();
  const std::lock_guard lock(state.mutex);
  return state.value;
}
void set_random_state(RandomState wanted) {
  if (replayed) {
    *replayed = {wanted};
    return;
  }
  engine::require_no_trace("manual_seed and set_random_state",
                           "call it before a run, whose random numbers follow from it");
  SharedState& state = shared_state();
  const std::lock_guard lock(state.mutex);
  state.value = wanted;
}
void manual_seed(std::uint64_t seed) { set_random_state({seed, 0}); }

namespace engine {

RandomPlace random_place() {
  if (replayed) return *replayed;
  if (const Trace* trace = Trace::of_random_numbers()) return {{0, trace->streams()}, true};
  return {random_state()};
}

RandomReplay::RandomReplay(RandomPlace place)
    : place_(place), outer_(std::exchange(replayed, &place_)) {}
RandomReplay::~RandomReplay() { replayed = outer_; }

Ex next_random(ScalarOp distribution) {
  if (replayed && replayed->of_run)
    return Ex::random_of_run(distribution, replayed->state.streams++);
  Trace* const trace = Trace::of_random_numbers();
  if (trace && !replayed) return Ex::random_of_run(distribution, trace->next_stream());
  const RandomOrigin origin = take_streams(1);
  return Ex::random(distribution, origin.seed, origin.stream);
}

RandomOrigin take_streams(std::uint64_t count) {
  if (replayed)
    return {replayed->state.seed,
            std::exchange(replayed->state.streams, replayed->state.streams + count)};
  SharedState& state = shared_state();
  const std::lock_guard lock(state.mutex);
  return {state.value.seed, std::exchange(state.value.streams, state.value.streams + count)};
}

}  // namespace engine
}  // namespace ein
