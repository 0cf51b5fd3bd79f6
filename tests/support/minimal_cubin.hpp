// The smallest image that is a cubin: a header, and three sections: none, names, symbols.
#pragma once

#include <cstdint>
#include <string>

namespace ein::test {

inline std::string minimal_cubin() {
  std::string image(64 + 8 + 3 * 64, '\0');
  const auto put = [&image](std::size_t at, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      image[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> 8 * i);
  };
  image.replace(0, 8,
                "\x7f"
                "ELF\2\1\1\x41");
  put(18, 190, 2);      // the machine
  put(40, 72, 8);       // where the sections' headers begin
  put(48, 90 << 8, 4);  // sm_90
  put(58, 64, 2);
  put(60, 3, 2);
  put(62, 1, 2);
  put(72 + 64 + 4, 3, 4);  // names
  put(72 + 64 + 24, 64, 8);
  put(72 + 64 + 32, 8, 8);
  put(72 + 128 + 4, 2, 4);  // symbols, none
  put(72 + 128 + 24, 64, 8);
  put(72 + 128 + 40, 1, 4);
  return image;
}

/// What follows such an image that stands for a library of kernels for the host: this, and the
/// library's path.
inline constexpr char host_kernels[] = "HOSTKERN";

}  // namespace ein::test
