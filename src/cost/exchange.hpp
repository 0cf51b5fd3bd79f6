// What the processes of a mesh exchange, counted from the nests that run.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "nest/nest.hpp"

namespace ein {

/// Between the names of the axes of a composite dimension, where a collective has one axis for it:
/// "h/model·d".
inline constexpr std::string_view composite = "·";

/// Of one run of a program of numbers, by kind and mesh axes.
std::vector<Exchange> exchanges_of(const Program& program, std::span<const MeshAxis> mesh);

/// An exchange of nothing yet, over the mesh axes whose bits are set.
Exchange exchange_over(Collective collective, std::uint32_t mesh_axes,
                       std::span<const MeshAxis> mesh);

}  // namespace ein
