// A check of gradients before their sizes are compared.
#pragma once

#include <string>

#include <ein/error.hpp>
#include <ein/tensor.hpp>

namespace ein {

/// An Error of kind `dtype`, which begins with `what`, for a complex gradient.
inline void require_real_gradient(const char* what, const Tensor& gradient) {
  if (!is_complex(gradient.dtype())) return;
  throw Error(ErrorKind::dtype, std::string(what) + ": a gradient of shape " +
                                    gradient.shape().to_string() + " is " +
                                    std::string(name(gradient.dtype())) +
                                    "\n  help: give the parameters that are real");
}

}  // namespace ein
