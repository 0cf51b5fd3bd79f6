// Meshes of the processes that run a test, and what an independent library counts of their calls.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ein/mesh.hpp>

#include "support/exchange_counts.hpp"

namespace ein::test {

inline bool is_launched() { return std::getenv("EIN_SHM") || std::getenv("OMPI_COMM_WORLD_SIZE"); }

/// Of the processes that were launched, or of one.
inline Mesh mesh_of(std::vector<MeshAxis> axes) {
  return Mesh(std::move(axes), is_launched() ? "" : "loop");
}

/// What the library ein_mpi_counts, where it is preloaded, counts of a program's calls of MPI from
/// here on.
class MpiCounts {
 public:
  MpiCounts() : before_(now()) {}

  /// As much was given as `exchanges` say, which are along axes of the mesh.
  void expect_given(const std::vector<Exchange>& exchanges, const Mesh& mesh) const {
    const char* const preloaded = std::getenv("LD_PRELOAD");
    const bool is_preloaded =
        preloaded && std::string(preloaded).find("ein_mpi_counts") != std::string::npos;
    EXPECT_EQ(before_.has_value(), is_preloaded);
    if (!before_) return;
    EXPECT_EQ(difference(*now(), *before_), counts_of(exchanges, mesh));
  }

 private:
  static std::optional<Counts> now() {
    void* const function = dlsym(RTLD_DEFAULT, "ein_mpi_counts");
    if (!function) return std::nullopt;
    return counts_in(reinterpret_cast<const char* (*)()>(function)());
  }

  std::optional<Counts> before_;
};

}  // namespace ein::test
