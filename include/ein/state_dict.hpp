// StateDict: tensors by name, as models, optimizers and files exchange them.
#pragma once

#include <map>
#include <string>

#include <ein/tensor.hpp>

namespace ein {

/// Tensors by name, such as "layers.0.weight".
using StateDict = std::map<std::string, Tensor, std::less<>>;
/// Texts by name that accompany them.
using Metadata = std::map<std::string, std::string>;

}  // namespace ein
