// Device: where tensors live and operations on them run.
#pragma once

#include <cstdint>
#include <string>

namespace ein {

/// The CPU or an NVIDIA GPU. Naming a device takes nothing; the first tensor on a GPU opens
/// NVIDIA's driver, and is an Error of kind `device` that says what is missing where there is none.
class Device {
 public:
  enum class Kind : std::uint8_t { cpu, cuda };

  constexpr Device(Kind kind, int index = 0) : kind_(kind), index_(index) {}
  constexpr Kind kind() const { return kind_; }
  /// Among those of its kind, from 0.
  constexpr int index() const { return index_; }
  /// Another of its kind: `ein::cuda(1)`.
  constexpr Device operator()(int index) const { return {kind_, index}; }
  friend constexpr bool operator==(const Device&, const Device&) = default;

 private:
  Kind kind_;
  int index_;
};

inline constexpr Device cpu{Device::Kind::cpu};
/// The first GPU.
inline constexpr Device cuda{Device::Kind::cuda};

/// "cpu", "cuda:0".
std::string to_string(Device device);

/// How many devices of this kind there are; 0 GPUs where there is no driver.
int device_count(Device::Kind kind = Device::Kind::cuda);

/// Waits until the device has done all that it was given; reports what failed on it as an Error.
void synchronize(Device device);

}  // namespace ein
