// What is in a .npy file, wherever that lies.
#pragma once

#include <string>
#include <string_view>

#include <ein/tensor.hpp>

#include "io/byte_stream.hpp"

namespace ein::io {

inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// As load_npy reads a file; bytes behind the elements are left in the stream.
Tensor read_npy(ByteStream& in);

/// What a .npy file of `x` has before the elements. Errors as save_npy has, which name `caller`.
std::string npy_header_for(const std::string& caller, const Tensor& x);

}  // namespace ein::io
