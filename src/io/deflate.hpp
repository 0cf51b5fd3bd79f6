// Deflate, the compression of zip archives (RFC 1951), by zlib where ein was built with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "io/byte_stream.hpp"

namespace ein::io {

/// Whether there is a zlib.
bool can_deflate();

/// What the bytes of `compressed` stand for, of which there are `bytes`. Errors are of kind `file`:
/// bytes that are not compressed so, or stand for fewer; a build without zlib.
std::unique_ptr<ByteStream> inflated(std::unique_ptr<ByteStream> compressed, std::uint64_t bytes);

/// Puts these bytes, compressed, behind `to`. Errors name `caller`: of kind `memory`, and of kind
/// `value` for a build without zlib.
class Deflater {
 public:
  explicit Deflater(const std::string& caller);
  ~Deflater();
  void add(const void* data, std::size_t bytes, std::string& to);
  void finish(std::string& to);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ein::io
