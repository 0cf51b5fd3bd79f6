// XXH64: a fast 64-bit checksum, against accidents and not against intent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ein::io {

/// XXH64 with seed 0 of all bytes given to update(), after Y. Collet's specification "xxHash fast
/// digest algorithm" (github.com/Cyan4973/xxHash, doc/xxhash_spec.md, version 0.2.0).
class Xxh64 {
 public:
  Xxh64();
  void update(const void* data, std::size_t bytes);
  std::uint64_t digest() const;

 private:
  static constexpr std::size_t stripe = 32;

  void consume(const unsigned char* data);

  std::array<std::uint64_t, 4> lanes_;
  std::array<unsigned char, stripe> pending_{};  // the first length_ % stripe are in use
  std::uint64_t length_ = 0;
};

inline std::uint64_t xxh64(std::string_view bytes) {
  Xxh64 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.digest();
}

/// As 16 hexadecimal digits.
std::string hex(std::uint64_t checksum);

}  // namespace ein::io
