// The instructions of AMX as the matrix products use them: registers of 16 rows of 64 bytes, whose
// products are those of 16 × 32 by 32 × 16 numbers of bf16.
#pragma once

#if defined(EIN_EMULATED_TILES)
#include EIN_EMULATED_TILES  // of the tests
#elif defined(__AMX_BF16__)

#include <cstdint>

// Numbers of registers are parts of an instruction's text. GCC's own functions do not tell it that
// memory is read.
// clang-format off
#define EIN_TILE_ZERO(tile) asm volatile("tilezero %%tmm" #tile ::)
// `stride` bytes from row to row.
#define EIN_TILE_LOAD(tile, from, stride)                                     \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #tile                             \
               ::"r"(from), "r"(std::int64_t{stride}) : "memory")
#define EIN_TILE_STORE(tile, to, stride)                                      \
  asm volatile("tilestored %%tmm" #tile ", (%0,%1,1)"                         \
               ::"r"(to), "r"(std::int64_t{stride}) : "memory")
// sum += a · b, where rows of b hold the pairs of one depth.
#define EIN_TILE_MULTIPLY_ADD(sum, a, b)                                      \
  asm volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)
// clang-format on

namespace ein::host::EIN_LEVEL {

/// All registers of the calling thread are whole tiles, until this goes.
class Tiles {
 public:
  Tiles() {
    struct alignas(64) Shape {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    static constexpr Shape shape;
    asm volatile("ldtilecfg %0" ::"m"(shape));
  }
  ~Tiles() { asm volatile("tilerelease" ::); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

}  // namespace ein::host::EIN_LEVEL

#endif
