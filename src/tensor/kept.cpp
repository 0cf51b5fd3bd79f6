#include "tensor/kept.hpp"

#include <algorithm>
#include <mutex>

#include <ein/memory.hpp>
#include "machine/fork.hpp"
#include "tensor/memory_count.hpp"

namespace ein {

std::atomic<std::uint64_t> LastUse::clock{1};

namespace {

constexpr std::size_t usual_limit = std::size_t{256} << 20;

constinit MemoryCount all_plans;
constinit std::atomic<std::size_t> limit{usual_limit};
/// Above the limit where plans in use hold more: otherwise each new plan would drop all others.
constinit std::atomic<std::size_t> bounded_from{usual_limit};

struct Registry {
  std::mutex mutex;
  std::vector<Releasable*> all;
};
Registry& registry() {
  return made_once([] { return Registry(); });
}

/// Drops plans that nobody holds, used at until(oldest) or before, `oldest` the first of their
/// uses. Whether there were any.
template <class Until>
bool drop_plans(const Until& until) {
  Releasable::Dropped dropped;  // outlives the lock: destructors may run a caller's own code
  const NoForkLock lock(registry().mutex);
  std::uint64_t oldest = LastUse::never;
  for (Releasable* one : registry().all) oldest = std::min(oldest, one->oldest_use());
  if (oldest == LastUse::never) return false;
  for (Releasable* one : registry().all) one->drop(until(oldest), dropped);
  return !dropped.empty();
}

/// Those of the first eighth of the time since the oldest was used.
bool drop_oldest_plans() {
  return drop_plans([](std::uint64_t oldest) { return oldest + (LastUse().at() - oldest) / 8; });
}

}  // namespace

KeptBytes::~KeptBytes() { all_plans.remove(bytes_); }
void KeptBytes::add(std::size_t bytes) const {
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  all_plans.add(bytes);
}

void Releasable::register_self() {
  const NoForkLock lock(registry().mutex);
  registry().all.push_back(this);
}

void Releasable::unregister() {
  const NoForkLock lock(registry().mutex);
  std::erase(registry().all, this);
}

void Releasable::release_all() {
  const NoForkLock lock(registry().mutex);
  for (Releasable* one : registry().all) one->release();
}

void bound_plans() {
  const std::size_t most = limit;
  if (all_plans.live() <= most) {
    bounded_from = most;
  } else if (all_plans.live() > bounded_from) {
    while (all_plans.live() > most - most / 8 && drop_oldest_plans()) {
    }
    bounded_from = std::max(most, all_plans.live() + most / 8);
  }
}

std::size_t plan_bytes() { return all_plans.live(); }
std::size_t plan_limit() { return limit; }
void set_plan_limit(std::size_t bytes) {
  limit = bytes;
  bounded_from = bytes;
  bound_plans();
}
void release_plans() {
  // Again: what is dropped may have been the last to hold another.
  while (drop_plans([](std::uint64_t) { return LastUse::never; })) {
  }
}

}  // namespace ein
