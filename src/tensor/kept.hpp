// Plans that are kept: how many bytes they hold, when they were used last, and who drops them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ein {

/// Bytes of one thing that is kept, counted by plan_bytes() while it lives. Thread-safe.
class KeptBytes {
 public:
  explicit KeptBytes(std::size_t bytes = 0) { add(bytes); }
  ~KeptBytes();
  KeptBytes(KeptBytes&& other) noexcept : bytes_(other.bytes_.exchange(0)) {}
  KeptBytes& operator=(KeptBytes&& other) noexcept {
    bytes_ = other.bytes_.exchange(bytes_);
    return *this;
  }
  void add(std::size_t bytes) const;

 private:
  mutable std::atomic<std::size_t> bytes_{0};
};

/// When something was used last, by a clock that goes on with each plan that is kept: repeated
/// calls read it and write nothing. Thread-safe.
class LastUse {
 public:
  void note() const {
    const std::uint64_t now = clock.load(std::memory_order_relaxed);
    if (at_.load(std::memory_order_relaxed) != now) at_.store(now, std::memory_order_relaxed);
  }
  std::uint64_t at() const { return at_.load(std::memory_order_relaxed); }
  /// The clock goes on.
  static void next() { clock.fetch_add(1, std::memory_order_relaxed); }
  static constexpr std::uint64_t never = UINT64_MAX;

 private:
  static std::atomic<std::uint64_t> clock;
  mutable std::atomic<std::uint64_t> at_{clock.load(std::memory_order_relaxed)};
};

/// Frees what it keeps for ein::release_memory(), and drops plans for ein::release_plans() and
/// their limit. Constructors of derived classes call register_self() last, destructors unregister()
/// first: in between other threads may call what is below.
class Releasable {
 public:
  /// To be destroyed when no lock is held.
  using Dropped = std::vector<std::shared_ptr<const void>>;

  Releasable() = default;
  virtual ~Releasable() = default;
  Releasable(const Releasable&) = delete;
  Releasable& operator=(const Releasable&) = delete;
  /// Frees memory of tensors that can be had again.
  virtual void release() {}
  /// The last use of the plan that was used longest ago, of those that nobody else holds; never
  /// where there is none.
  virtual std::uint64_t oldest_use() = 0;
  /// Drops the plans that nobody else holds and that were used at `until` or before.
  virtual void drop(std::uint64_t until, Dropped& dropped) = 0;

  static void release_all();

 protected:
  void register_self();
  void unregister();
};

/// Moves those of `entries` to `dropped` that drop() asks for. `kept` gives an entry's shared_ptr,
/// whose object has a `last_use`.
template <class Entries, class Kept>
void drop_from(Entries& entries, std::uint64_t until, Releasable::Dropped& dropped,
               const Kept& kept) {
  for (auto entry = entries.begin(); entry != entries.end();) {
    auto& pointer = kept(*entry);
    if (pointer.use_count() > 1 || pointer->last_use.at() > until) {
      ++entry;
      continue;
    }
    dropped.emplace_back();  // first, as it may find no memory
    dropped.back() = std::move(pointer);
    entry = entries.erase(entry);
  }
}
template <class Entries, class Kept>
std::uint64_t oldest_use_of(const Entries& entries, const Kept& kept) {
  std::uint64_t oldest = LastUse::never;
  for (const auto& entry : entries) {
    const auto& pointer = kept(entry);
    if (pointer.use_count() == 1) oldest = std::min(oldest, pointer->last_use.at());
  }
  return oldest;
}

/// Where plans hold more than plan_limit(), drops those that were used longest ago. To be called
/// after a plan has been made or has grown, without locks.
void bound_plans();

}  // namespace ein
