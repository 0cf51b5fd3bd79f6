// How tests compile emitted kernels for the host.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
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
  std::string command = "'" EIN_HOST_COMPILER "'";
  if (chosen && *chosen) {
    command = chosen;
  } else if (*EIN_HOST_LAUNCHER) {
    // ccache, which keeps what it compiled; of GCC it asks the second to see precompiled headers.
    command = EIN_HOST_LAUNCHER " " + command;
#ifndef __clang__
    command += " -fpch-preprocess";
#endif
  }
  command += " -std=c++20 -O1 -w -fPIC -ffp-contract=off -fno-strict-aliasing -U_FORTIFY_SOURCE";
#if defined(__SANITIZE_ADDRESS__)
  command += " -g -fsanitize=address,undefined -fno-sanitize-recover=all";
#endif
  return command;
}

/// Makes the library NAME.so of NAME.cpp in a directory; returns what the compiler says if it
/// cannot.
inline std::string compile_on_host(const std::string& directory, const std::string& name) {
  const auto quoted = [&](const char* suffix) { return "'" + name + suffix + "' "; };
  const std::string object = quoted(".o"), log = "2> " + quoted(".log");
  const std::string command = "cd '" + directory + "' && " + host_compiler() + " -c -o " + object +
                              quoted(".cpp") + log + "&& " + host_compiler() + " -shared -o " +
                              quoted(".so") + object + log + "&& rm " + object;
  if (std::system(command.c_str()) == 0) return {};
  std::ifstream file(directory + "/" + name + ".log", std::ios::binary);
  const std::string said{std::istreambuf_iterator<char>(file), {}};
  return said.empty() ? command + " failed" : said.substr(0, 4000);
}

}  // namespace ein::test
