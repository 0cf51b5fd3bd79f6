// The keys of plans, and the plans that are kept under them.
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "compile/operand.hpp"
#include "machine/float_mode.hpp"
#include "machine/fork.hpp"
#include "machine/thread_end.hpp"
#include "runtime/mesh.hpp"
#include "runtime/plan.hpp"
#include "runtime/range_plan.hpp"
#include "tensor/heap_bytes.hpp"
#include "tensor/kept.hpp"

namespace ein::engine {

namespace {
std::vector<std::int64_t>& thread_words() {
  return made_once_by_thread([] { return std::vector<std::int64_t>(); });
}
}  // namespace

PlanKey::PlanKey() : words_(thread_words()) {
  words_.clear();
  add(FloatMode::of_this_thread().word());
}
PlanKey::PlanKey(std::span<const std::int64_t> words) : words_(thread_words()) {
  words_.assign(words.begin(), words.end());
}

void PlanKey::add(std::string_view text) {
  add(static_cast<std::int64_t>(text.size()));
  const std::size_t at = words_.size();
  words_.resize(at + (text.size() + 7) / 8, 0);
  std::memcpy(words_.data() + at, text.data(), text.size());
}

void PlanKey::add_kind(const Tensor& operand) {
  const Backend& backend = backend_of(operand.device());
  add(reinterpret_cast<std::intptr_t>(&backend));
  if (const auto& placed = operand.impl().placed) {
    add(-static_cast<std::int64_t>(operand.rank()) - 1);
    add(reinterpret_cast<std::intptr_t>(placed->mesh.get()));
    for (std::size_t d = 0; d < operand.rank(); ++d) {
      add(static_cast<std::int64_t>(placed->placement.split(d).size()));
      for (const int m : placed->placement.split(d)) add(m);
    }
    return add(placed->parts.front());
  }
  add(static_cast<std::int64_t>(operand.dtype()) << 32 |
      static_cast<std::int64_t>(backend.settings()) << 24 | elements_unaligned(operand) << 16 |
      static_cast<std::int64_t>(operand.rank() & 0xFFFF));
}

void PlanKey::add(const Tensor& operand) {
  add_kind(operand);
  for (Size size : operand.shape()) add(size.word());
  for (Size stride : operand.strides()) add(stride.word());
}

void PlanKey::add(const Shape& shape) {
  add(static_cast<std::int64_t>(shape.rank()));
  for (Size size : shape) add(size.word());
}

void PlanKey::add(const detail::PatternArgument& pattern, std::span<const AxisSize> sizes) {
  add(pattern.text());
  add(static_cast<std::int64_t>(sizes.size()));
  for (const AxisSize& size : sizes) {
    add(size.name);
    add(size.size.word());
    add(static_cast<std::int64_t>(size.is_number));
  }
}

// --- cache ---

namespace {

std::uint64_t hash_of(std::span<const std::int64_t> words) {
  // Two at a time: the multiplications of the one do not wait for those of the other.
  const auto mixed = [](std::uint64_t hash, std::int64_t word) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) * 0xFF51AFD7ED558CCDu;
    return hash ^ hash >> 32;
  };
  std::uint64_t even = 0x9E3779B97F4A7C15u, odd = 0xC2B2AE3D27D4EB4Fu;
  std::size_t i = 0;
  for (; i + 2 <= words.size(); i += 2) {
    even = mixed(even, words[i]);
    odd = mixed(odd, words[i + 1]);
  }
  if (i < words.size()) even = mixed(even, words[i]);
  return even ^ (odd << 1 | odd >> 63);
}

/// Whether an entry, which has the words of its key, is of this key.
bool are_equal(const std::vector<std::int64_t>& words, std::span<const std::int64_t> key) {
  return std::equal(words.begin(), words.end(), key.begin(), key.end());
}

/// What is kept under keys, found by their hash.
template <class T>
class Entries {
 public:
  std::shared_ptr<T> find(std::uint64_t hash, std::span<const std::int64_t> words) const {
    const auto [begin, end] = entries_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (!are_equal(it->second.words, words)) continue;
      it->second.value->last_use.note();
      return it->second.value;
    }
    return nullptr;
  }
  void keep(std::uint64_t hash, std::span<const std::int64_t> words, std::shared_ptr<T> value) {
    LastUse::next();
    value->last_use.note();
    entries_.emplace(hash, Entry{{words.begin(), words.end()},
                                 std::move(value),
                                 KeptBytes(node_bytes + block_bytes(words.size_bytes()))});
  }
  std::uint64_t oldest_use() const { return oldest_use_of(entries_, value_of); }
  void drop(std::uint64_t until, Releasable::Dropped& dropped) {
    drop_from(entries_, until, dropped, value_of);
  }

 private:
  struct Entry {
    std::vector<std::int64_t> words;
    std::shared_ptr<T> value;
    KeptBytes kept;  // of the entry itself
  };
  static constexpr std::size_t node_bytes = block_bytes(sizeof(Entry) + 32);
  static constexpr auto value_of = [](auto& entry) -> auto& { return entry.second.value; };

  std::unordered_multimap<std::uint64_t, Entry> entries_;
};

/// All plans of the process.
struct PlanCache final : Releasable {
  PlanCache() { register_self(); }
  ~PlanCache() override { unregister(); }
  std::uint64_t oldest_use() override {
    const std::lock_guard lock(mutex);
    return std::min(plans.oldest_use(), ranges.oldest_use());
  }
  void drop(std::uint64_t until, Dropped& dropped) override {
    const std::lock_guard lock(mutex);
    plans.drop(until, dropped);
    ranges.drop(until, dropped);
  }

  std::mutex mutex;  // no shared_mutex: its owner's thread has another number in a child of fork()
  Entries<const Plan> plans;
  Entries<RangePlans> ranges;
};

PlanCache& plan_cache() { return made_once_with_lock<PlanCache, StaticLock::plan_cache>(); }

/// One of the plans that this thread used last, found without a lock, as long as it is kept.
struct RecentPlan {
  std::vector<std::int64_t> words;
  std::weak_ptr<const Plan> plan;
};
RecentPlan& recent_plan(std::uint64_t hash) {
  using Recent = std::array<RecentPlan, 64>;
  Recent& recent = made_once_by_thread([] { return Recent(); });
  return recent[hash % recent.size()];
}
/// Longer keys are found with the lock, so that threads remember 256 KiB at most.
constexpr std::size_t most_recent_words = 512;

}  // namespace

std::shared_ptr<const Plan> find_plan(const PlanKey& key) {
  const std::uint64_t hash = hash_of(key.words());
  RecentPlan& recent = recent_plan(hash);
  if (are_equal(recent.words, key.words())) {
    if (auto plan = recent.plan.lock()) {
      plan->last_use.note();
      return plan;
    }
  }
  PlanCache& cache = plan_cache();
  std::unique_lock lock(cache.mutex);
  auto plan = cache.plans.find(hash, key.words());
  lock.unlock();
  if (plan && key.words().size() <= most_recent_words)
    recent = {{key.words().begin(), key.words().end()}, plan};
  return plan;
}

void keep_plan(const PlanKey& key, std::shared_ptr<const Plan> plan) {
  PlanCache& cache = plan_cache();
  std::unique_lock lock(cache.mutex);
  cache.plans.keep(hash_of(key.words()), key.words(), std::move(plan));
  lock.unlock();
  bound_plans();
}

std::shared_ptr<RangePlans> range_plans(const PlanKey& kind) {
  const std::uint64_t hash = hash_of(kind.words());
  PlanCache& cache = plan_cache();
  const std::lock_guard lock(cache.mutex);
  auto plans = cache.ranges.find(hash, kind.words());
  if (!plans) {
    plans = std::make_shared<RangePlans>();
    cache.ranges.keep(hash, kind.words(), plans);
  }
  return plans;
}

}  // namespace ein::engine
