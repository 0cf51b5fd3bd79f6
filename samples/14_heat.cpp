// A heat equation: a stencil is a sum at functions of the indices. Its picture is written.
#include <cstdio>
#include <fstream>
#include <vector>

#include <ein/compile.hpp>
#include <ein/ein.hpp>

/// Temperatures from 0 to 1 as a grey picture, in the format PGM.
void write_picture(const ein::Tensor& heat, const char* path) {
  std::ofstream file(path, std::ios::binary);
  file << "P5 " << heat.shape()[1] << ' ' << heat.shape()[0] << " 255\n";
  for (std::int64_t y = 0; y < heat.shape()[0]; ++y) {
    for (std::int64_t x = 0; x < heat.shape()[1]; ++x)
      file.put(static_cast<char>(255 * heat(y, x).item()));
  }
}

int main(int argc, char** argv) {
  // A square is hot at first; around the plate it is 0 degrees, as beside the tensor there is
  // nothing.
  const std::int64_t size = 128;
  ein::Tensor heat = ein::pad(ein::ones({32, 32}), "[y x]", 48, 48);

  // Each point gets an eighth of its four neighbours' heat, and keeps a half of its own.
  const ein::Tensor stencil =
      ein::tensor({{0.0f, 0.125f, 0.0f}, {0.125f, 0.5f, 0.125f}, {0.0f, 0.125f, 0.0f}});
  auto step = ein::compile([&](const ein::Tensor& now) {
    return ein::einsum(now, stencil, "{y + dy - 1} {x + dx - 1}, dy dx -> y x");
  });

  for (int i = 0; i <= 2000; ++i) {
    if (i % 400 == 0) {
      std::printf("step %4d  in the middle %.4f  in all %.1f\n", i, heat(size / 2, size / 2).item(),
                  ein::reduce(heat, "y x ->", "sum").item());
    }
    heat = step(heat);
  }
  const char* const path = argc > 1 ? argv[1] : "heat.pgm";
  write_picture(heat, path);
  std::printf("%s has the last step\n", path);
}
