// Setting: a number beside tensors on which a function's operations depend.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace ein::detail {

/// Such as whether a module trains. A trace notes the settings that its function reads: with other
/// values the function is traced anew. So does the first run of a checkpoint, whose second run has
/// to read the same. Thread-safe.
class Setting : public std::enable_shared_from_this<Setting> {
 public:
  explicit Setting(std::int64_t value) : value_(value) {}
  /// The value, noted by this thread's trace and checkpoints.
  std::int64_t read() const;
  /// The value, unnoted.
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }
  void set(std::int64_t value);

 private:
  std::atomic<std::int64_t> value_;
};

/// A setting and the value that was read.
struct ReadSetting {
  std::shared_ptr<const Setting> setting;
  std::int64_t value = 0;
  bool holds() const { return setting->value() == value; }
  bool operator==(const ReadSetting&) const = default;
};

}  // namespace ein::detail
