// Meshes of the processes that run a test, and what an independent library counts of their calls.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ein/mesh.hpp>

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
    Counts given = *now();
    for (const auto& [key, count] : *before_) {
      given[key].first -= count.first;
      given[key].second -= count.second;
      if (given[key].first == 0) given.erase(key);
    }
    EXPECT_EQ(given, counts_of(exchanges, mesh));
  }

 private:
  /// Calls and bytes by "all_reduce 0 2", a collective and the ranks of its processes.
  using Counts = std::map<std::string, std::pair<long long, long long>>;

  static std::optional<Counts> now() {
    void* const function = dlsym(RTLD_DEFAULT, "ein_mpi_counts");
    if (!function) return std::nullopt;
    std::istringstream lines(reinterpret_cast<const char* (*)()>(function)());
    Counts counts;
    for (std::string line; std::getline(lines, line);) {
      const std::size_t colon = line.find(':'), comma = line.find(',');
      counts[line.substr(0, colon)] = {std::stoll(line.substr(colon + 1)),
                                       std::stoll(line.substr(comma + 1))};
    }
    return counts;
  }

  static Counts counts_of(const std::vector<Exchange>& exchanges, const Mesh& mesh) {
    Counts counts;
    for (const Exchange& exchange : exchanges) {
      std::string key(name(exchange.collective));
      for (int rank = 0; rank < mesh.size(); ++rank) {
        bool is_of_group = true;
        int rest = rank, own = mesh.rank();
        for (std::size_t a = mesh.axes().size(); a-- > 0;) {
          const auto& [axis, size] = mesh.axes()[a];
          const auto& over = exchange.over;
          is_of_group &=
              rest % size == own % size || std::find(over.begin(), over.end(), axis) != over.end();
          rest /= size;
          own /= size;
        }
        if (is_of_group) key += " " + std::to_string(rank);
      }
      counts[key] = {exchange.calls, exchange.bytes};
    }
    return counts;
  }

  std::optional<Counts> before_;
};

}  // namespace ein::test
