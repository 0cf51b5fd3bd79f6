// NVRTC: CUDA C++ compiled while the program runs, without a GPU.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <vector>

#include "cuda/cubin.hpp"

namespace ein::gpu {

/// Of CUDA: 12.4, 13.0.
struct CudaVersion {
  int major = 0, minor = 0;
  auto operator<=>(const CudaVersion&) const = default;
};
/// The oldest that ein uses, of the driver and of NVRTC.
inline constexpr CudaVersion oldest_cuda{12, 0};
std::string to_string(CudaVersion version);

/// A translation unit to compile.
struct Source {
  std::string name;  ///< for the messages: a file name such as "contract.cu"
  std::string text;
  std::string arch = "sm_90a";  ///< sm_80, sm_90a, sm_100a ...
  std::vector<std::string> options{};
};

/// Whether there is an NVRTC; if not, `why` says what is missing. It is looked for once: the file
/// that the environment's EIN_NVRTC names and no other, or else what the loader finds, newest
/// first, or what lies in the toolkit's folder ($CUDA_HOME, /usr/local/cuda). A driver loads what
/// NVRTC of its own or an older major version compiled, so where there is a driver, a newer one is
/// taken only for want of another.
bool nvrtc_is_available(std::string* why = nullptr);

/// These throw an Error that says what to install where there is no NVRTC.
CudaVersion nvrtc_version();
/// The architectures it compiles for, ascending: 75 for sm_75.
std::vector<int> nvrtc_architectures();

/// Why a driver for this version of CUDA loads nothing that this NVRTC compiles, with both
/// versions; empty where it does.
std::string why_not_on(CudaVersion driver);

/// Compiles to machine code. May be called from many threads at once. An Error with the compiler's
/// log where the text has mistakes, one of kind `value` for a text with a NUL byte and for an
/// architecture that is none or that this NVRTC does not know.
Cubin compile(const Source& source);

}  // namespace ein::gpu
