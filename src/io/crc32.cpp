#include "io/crc32.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace ein::io {
namespace {

constexpr std::size_t stride = 8;  // bytes at a time

/// tables[k][b]: what a byte b does to the checksum once k more bytes have followed it.
/// The polynomial is that of ISO 3309, bits reversed.
constexpr auto tables = [] {
  std::array<std::array<std::uint32_t, 256>, stride> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t word = b;
    for (int bit = 0; bit < 8; ++bit) word = (word >> 1) ^ (word & 1 ? 0xEDB88320u : 0u);
    tables[0][b] = word;
  }
  for (std::size_t k = 1; k < stride; ++k) {
    for (std::size_t b = 0; b < 256; ++b)
      tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 255];
  }
  return tables;
}();

}  // namespace

std::uint32_t crc32(std::uint32_t before, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint32_t word = ~before;
  for (; bytes >= stride; bytes -= stride, at += stride) {
    std::array<unsigned char, stride> next;
    std::memcpy(next.data(), at, stride);
    for (std::size_t i = 0; i < 4; ++i)
      next[i] = static_cast<unsigned char>(next[i] ^ (word >> (8 * i)));
    word = 0;
    for (std::size_t i = 0; i < stride; ++i) word ^= tables[stride - 1 - i][next[i]];
  }
  for (; bytes > 0; --bytes, ++at) word = (word >> 8) ^ tables[0][(word ^ *at) & 255];
  return ~word;
}

}  // namespace ein::io
