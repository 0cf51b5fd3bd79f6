// The registers of tiles of AMX and their instructions, in memory: in the place of what tiles.hpp
// has, where the processor has none.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#define EIN_TILE_ZERO(tile) emulated_tiles.zero(tile)
#define EIN_TILE_LOAD(tile, from, stride) emulated_tiles.load(tile, from, stride)
#define EIN_TILE_STORE(tile, to, stride) emulated_tiles.store(tile, to, stride)
#define EIN_TILE_MULTIPLY_ADD(sum, a, b) emulated_tiles.multiply_add(sum, a, b)

namespace ein::host::EIN_LEVEL {

/// Who uses a register without a Tiles is told so.
class EmulatedTiles {
 public:
  void begin() { are_whole_ = true; }
  void end() { are_whole_ = false; }
  void zero(int tile) { std::memset(at(tile), 0, sizeof tiles_[0]); }
  void load(int tile, const void* from, std::int64_t stride) {
    for (int r = 0; r < 16; ++r)
      std::memcpy(at(tile) + 64 * r, static_cast<const std::byte*>(from) + r * stride, 64);
  }
  void store(int tile, void* to, std::int64_t stride) {
    for (int r = 0; r < 16; ++r)
      std::memcpy(static_cast<std::byte*>(to) + r * stride, at(tile) + 64 * r, 64);
  }
  void multiply_add(int sum, int a, int b) {
    const auto number = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
    constexpr std::uint32_t upper = 0xffff0000;
    for (int i = 0; i < 16; ++i) {
      std::uint32_t a_pairs[16], b_pairs[16];
      float sums[16];
      std::memcpy(a_pairs, at(a) + 64 * i, 64);
      std::memcpy(sums, at(sum) + 64 * i, 64);
      for (int p = 0; p < 16; ++p) {
        std::memcpy(b_pairs, at(b) + 64 * p, 64);
        const float low = number(a_pairs[p] << 16), high = number(a_pairs[p] & upper);
        for (int j = 0; j < 16; ++j) sums[j] += low * number(b_pairs[j] << 16);
        for (int j = 0; j < 16; ++j) sums[j] += high * number(b_pairs[j] & upper);
      }
      std::memcpy(at(sum) + 64 * i, sums, 64);
    }
  }

 private:
  std::byte* at(int tile) {
    if (!are_whole_) throw std::logic_error("a tile's shape is not known");
    return tiles_[tile];
  }
  alignas(64) std::byte tiles_[8][1024];
  bool are_whole_ = false;
};
inline thread_local EmulatedTiles emulated_tiles;

class Tiles {
 public:
  Tiles() { emulated_tiles.begin(); }
  ~Tiles() { emulated_tiles.end(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

}  // namespace ein::host::EIN_LEVEL
