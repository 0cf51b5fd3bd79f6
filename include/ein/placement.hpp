// Placement: how the dimensions of a value lie across the processes of a mesh.
#pragma once

#include <ein/compiler.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ein/detail/fields.hpp>

namespace ein {

/// An axis of a mesh: so many processes that differ along it.
struct MeshAxis {
  std::string name;
  int size = 1;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// Of each dimension of a value the mesh axes that split it in equal parts, by their numbers in the
/// mesh, the outermost first. One mesh axis splits one dimension. What no mesh axis splits is whole
/// on every process.
struct Placement {
  using Split = std::vector<int>;
  /// Marks a dimension whose split a reshard keeps.
  static Split same() { return {-1}; }
  std::vector<Split> dims{};  // where there are fewer than dimensions, the others are whole

  Split split(std::size_t dim) const { return dim < dims.size() ? dims[dim] : Split(); }
  bool is_whole() const {
    for (const Split& split : dims) {
      if (!split.empty()) return false;
    }
    return true;
  }
  EIN_FIELDS(Placement, dims)
  friend bool operator==(const Placement& a, const Placement& b) {
    for (std::size_t d = 0; d < a.dims.size() || d < b.dims.size(); ++d) {
      if (a.split(d) != b.split(d)) return false;
    }
    return true;
  }
};

/// What the processes of a group do together; or one of them sends to another.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  barrier,
  send
};
inline constexpr std::size_t collective_count = 6;
/// "all_reduce".
std::string_view name(Collective collective);
/// Whether it combines values.
constexpr bool combines(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter;
}

/// What a process gives to the collectives of a kind over some mesh axes.
struct Exchange {
  Collective collective = Collective::all_reduce;
  std::vector<std::string> over{};  ///< the mesh axes along which the processes differ
  std::int64_t processes = 1;       ///< that take part in each
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< of the operands of one process

  /// What a process sends where they pass values on in a ring: (n - 1)/n of the whole value, twice
  /// in an all_reduce (Thakur, Rabenseifner, Gropp 2005); all of it in a send. An estimate:
  /// transports may do otherwise.
  double sent_by_ring() const;
  friend bool operator==(const Exchange&, const Exchange&) = default;
};
/// "all_reduce over data: 3 calls, 1024 bytes", a line for each.
std::string to_string(const std::vector<Exchange>& exchanges);

}  // namespace ein
