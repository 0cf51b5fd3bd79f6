// What a function would become on a device, without running it there.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <ein/device.hpp>
#include <ein/tensor.hpp>
#include "nest/nest.hpp"

namespace ein::engine {

/// The program that ein::compile makes of `function` for arguments like these, grouped for
/// `device`, which need not be there: the tensors lie on the CPU, and nothing is allocated or run.
Program lowered(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& function,
                std::span<const Tensor> arguments, Device device);

}  // namespace ein::engine
