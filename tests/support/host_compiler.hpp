// How tests compile emitted kernels for the host.
#pragma once

#include <cstdlib>
#include <string>

namespace ein::test {

/// What all kernels include: device_on_host.hpp and the vocabulary. host_vocabulary.cpp writes it
/// while building, and compiles it ahead with this compiler and these options.
inline constexpr const char* host_header = EIN_HOST_HEADER;

/// The command of the compiler, $CXX or the one that compiled the tests, with its options. A
/// block's threads are stacks that longjmp() changes between, which _FORTIFY_SOURCE, set by some
/// systems, takes for a mistake.
inline std::string host_compiler() {
  const char* const chosen = std::getenv("CXX");
  return (chosen && *chosen ? std::string(chosen) : "'" EIN_HOST_COMPILER "'") +
         " -std=c++20 -O1 -w -fPIC -ffp-contract=off -fno-strict-aliasing -U_FORTIFY_SOURCE"
#if defined(__SANITIZE_ADDRESS__)
         " -g -fsanitize=address,undefined -fno-sanitize-recover=all"
#endif
      ;
}

}  // namespace ein::test
