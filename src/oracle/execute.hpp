// What a nest or a schedule computes, slowly and in double precision: the oracle of the code that
// is made of it.
#pragma once

#include <cstdint>
#include <vector>

#include "nest/nest.hpp"
#include "schedule/schedule.hpp"

namespace ein {

/// The program's buffers. Values of every dtype are doubles; nothing is rounded, but integers and
/// bool are what their dtype can hold.
using DoubleBuffers = std::vector<std::vector<double>>;

/// Runs a nest, element by element.
void execute(const LoopNest& nest, DoubleBuffers& buffers, RandomOrigin random = {});

/// Runs a schedule. The units of each step run in an order that `seed` says. Throws
/// std::logic_error where a unit reads or writes an element that another unit of its step wrote, or
/// reads scratch that nothing was written to.
void execute(const Schedule& schedule, DoubleBuffers& buffers, std::uint64_t seed = 0,
             RandomOrigin random = {});

}  // namespace ein
