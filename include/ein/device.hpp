// Device: where tensors live and operations on them run.
#pragma once

#include <ein/compiler.hpp>

#include <string>

namespace ein {

namespace detail {
/// What a kind of device is to the library: see src/backend/backend.hpp.
struct DeviceKind;
extern const DeviceKind cpu_kind, cuda_kind;
}  // namespace detail

/// The CPU or an NVIDIA GPU. Naming a device takes nothing; the first tensor on a GPU opens
/// NVIDIA's driver, and is an Error of kind `device` that says what is missing where there is none.
class Device {
 public:
  constexpr Device(const detail::DeviceKind& kind, int index = 0) : kind_(&kind), index_(index) {}
  constexpr const detail::DeviceKind& kind() const { return *kind_; }
  /// Among those of its kind, from 0.
  constexpr int index() const { return index_; }
  /// Another of its kind: `ein::cuda(1)`.
  constexpr Device operator()(int index) const { return {*kind_, index}; }
  friend constexpr bool operator==(const Device&, const Device&) = default;

 private:
  const detail::DeviceKind* kind_;
  int index_;
};

inline constexpr Device cpu{detail::cpu_kind};
/// The first GPU. A program that never names it has nothing for GPUs linked to it.
inline constexpr Device cuda{detail::cuda_kind};

/// "cpu", "cuda:0".
std::string to_string(Device device);

/// How many devices of this one's kind there are; 0 GPUs where there is no driver.
int device_count(Device device = cuda);

/// Waits until the device has done all that it was given; reports what failed on it as an Error.
void synchronize(Device device);

/// Whether contractions of f32 on GPUs may round their operands to tf32, which has 10 bits behind
/// the point in place of 23: up to eight times as fast on tensor cores, and exact to about three
/// digits. Off until it is asked for. Functions that ein::compile compiled before keep what they
/// have.
void allow_tf32(bool allowed = true);

/// Whether contractions that are compiled for a GPU from now on are first timed in a few ways on
/// that GPU, with scratch memory of the size of their operands. The fastest is remembered on disk.
/// Off until it is asked for, here or by EIN_TUNE=1 in the environment.
void tune(bool wanted = true);

}  // namespace ein
