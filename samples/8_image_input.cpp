// From a camera's image, rows of interleaved bytes, to the input of a network: one pass.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <ein/compile.hpp>
#include <ein/ein.hpp>

using namespace ein::literals;
using ein::Tensor;

int main() {
  // 480 x 640 pixels in rows of 2048 bytes, as drivers give them: 1920 bytes of a row are pixels.
  const std::int64_t height = 480, width = 640, row = 2048;
  std::vector<std::uint8_t> frame(static_cast<std::size_t>(height * row));
  for (std::size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<std::uint8_t>(i * 7 % 251);
  const Tensor image = ein::from_span(frame, {height, width, 3}, {row, 3, 1});  // no copy

  const Tensor mean = ein::tensor({0.485, 0.456, 0.406}),
               deviation = ein::tensor({0.229, 0.224, 0.225});
  const auto prepare = [&](const Tensor& pixels) {
    // The middle 448 x 448, left and right exchanged, each 2 x 2 pixels to one.
    const Tensor middle =
        ein::flip(pixels.at({ein::slice(16, 464), ein::slice(96, 544)}), "h [w] c");
    const Tensor small =
        ein::reduce(middle.to(ein::DType::f32) / 255, "(h 2) (w 2) c -> h w c", "mean");
    return ein::rearrange((small - mean) / deviation, "h w c -> 1 c h w");
  };
  auto compiled = ein::compile(prepare);
  const Tensor input = compiled(image), again = prepare(image);
  std::printf("%s %s -> %s %s\n", std::string(ein::name(image.dtype())).c_str(),
              image.shape().to_string().c_str(), std::string(ein::name(input.dtype())).c_str(),
              input.shape().to_string().c_str());
  const Tensor difference = ein::reduce(ein::abs(input - again), "... ->", "max");
  std::printf("compiled and call by call differ by %g at most\n", difference.item());
  std::printf(
      "bytes read %s, written %s; the image has %lld bytes of these pixels, the input %lld\n",
      compiled.cost().bytes_read.to_string().c_str(),
      compiled.cost().bytes_written.to_string().c_str(), static_cast<long long>(448 * 448 * 3),
      static_cast<long long>(input.nbytes()));
}
