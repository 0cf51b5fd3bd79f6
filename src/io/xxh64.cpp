#include "io/xxh64.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ein::io {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87, prime2 = 0xC2B2AE3D27D4EB4F,
                        prime3 = 0x165667B19E3779F9, prime4 = 0x85EBCA77C2B2AE63,
                        prime5 = 0x27D4EB2F165667C5;

template <class Word>
Word load(const unsigned char* data) {
  Word word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * prime2, 31) * prime1;
}

}  // namespace

Xxh64::Xxh64() : lanes_{prime1 + prime2, prime2, 0, 0 - prime1} {}

void Xxh64::consume(const unsigned char* data) {
  for (std::size_t i = 0; i < 4; ++i)
    lanes_[i] = round(lanes_[i], load<std::uint64_t>(data + 8 * i));
}

void Xxh64::update(const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  const auto* at = static_cast<const unsigned char*>(data);
  const auto* const end = at + bytes;
  const std::size_t held = length_ % stripe;
  length_ += bytes;
  if (held > 0) {
    const std::size_t taken = std::min(stripe - held, bytes);
    std::memcpy(pending_.data() + held, at, taken);
    at += taken;
    if (held + taken < stripe) return;
    consume(pending_.data());
  }
  for (; static_cast<std::size_t>(end - at) >= stripe; at += stripe) consume(at);
  std::copy(at, end, pending_.begin());
}

std::uint64_t Xxh64::digest() const {
  std::uint64_t hash = prime5;
  if (length_ >= stripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = (hash ^ round(0, lane)) * prime1 + prime4;
  }
  hash += length_;
  const unsigned char* at = pending_.data();
  const unsigned char* const end = at + length_ % stripe;
  for (; end - at >= 8; at += 8)
    hash = std::rotl(hash ^ round(0, load<std::uint64_t>(at)), 27) * prime1 + prime4;
  if (end - at >= 4) {
    hash = std::rotl(hash ^ load<std::uint32_t>(at) * prime1, 23) * prime2 + prime3;
    at += 4;
  }
  for (; at != end; ++at) hash = std::rotl(hash ^ *at * prime5, 11) * prime1;
  hash = (hash ^ hash >> 33) * prime2;
  hash = (hash ^ hash >> 29) * prime3;
  return hash ^ hash >> 32;
}

std::string hex(std::uint64_t checksum) {
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[checksum >> shift & 15];
  return digits;
}

}  // namespace ein::io
