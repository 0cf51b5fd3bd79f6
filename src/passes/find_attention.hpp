// Finds attention among nests.
#pragma once

#include <functional>
#include <span>

#include "nest/attention.hpp"
#include "nest/nest.hpp"

namespace ein {

/// Fills in program.groups: nests that compute attention, or its gradients, become one group each,
/// for a device that computes them without matrices of scores (Attention), and each other
/// nest is a group by itself. Nests change places where that brings such a group together.
/// Attention is known by what the nests say, however their expressions are cut; left alone is one
/// with a matrix that anything else reads, or that `kept` names. Buffers that only these nests use
/// become local. `memory` says which input buffers share memory: equal numbers do; empty for none.
/// `takes` says which the device computes.
void find_attention(Program& program, std::span<const int> kept, std::span<const int> memory,
                    const std::function<bool(const Attention&)>& takes);

}  // namespace ein
