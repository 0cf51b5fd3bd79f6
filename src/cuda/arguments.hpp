// The arguments of a kernel's launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "codegen/emit.hpp"

namespace ein::gpu {

/// The values of a kernel's parameters, and where each begins. May be used again and again.
class Arguments {
 public:
  /// Where a kernel finds what it works on.
  struct Memory {
    std::span<std::byte* const>
        buffers;                     // of the program; they and the workspace are aligned to 16
    std::byte* workspace = nullptr;  // bytes
    std::uint64_t fault = 0;         // the address of a KernelSource::Fault
    RandomOrigin random{};
    /// Encodes the map of what begins at this address.
    std::function<codegen::EncodedTensorMap(const codegen::TensorMap&, std::uint64_t address)>
        encode{};
  };
  /// Of a kernel whose sizes are numbers.
  void set(const codegen::KernelSource& kernel, const Memory& memory);

  const std::vector<std::uint64_t>& words() const { return words_; }
  std::span<void* const> addresses() const { return addresses_; }

 private:
  std::vector<std::uint64_t> words_;  // all that a parameter is made of has 64 bits
  std::vector<void*> addresses_;
};

}  // namespace ein::gpu
