// Patterns: axes by name, said once.
#include <cstdio>

#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor image =
      ein::arange(2 * 4 * 6).reshape({2, 4, 6}).to(ein::DType::f32);  // channels, height, width

  // The pattern says what the axes are and where they go; the literal is checked by the compiler.
  const ein::Tensor planes = ein::rearrange(image, "c h w -> h w c");
  std::printf("c h w -> h w c            %s\n", planes.shape().to_string().c_str());

  // Parentheses split and merge axes: 2 x 2 patches, each a row.
  const ein::Tensor patches =
      ein::rearrange(image, "c (h ph) (w pw) -> (h w) (c ph pw)", "ph"_a = 2, "pw"_a = 2);
  std::printf("patches                   %s\n", patches.shape().to_string().c_str());

  // What the output lacks is reduced; a number in the input is an axis of that size.
  const ein::Tensor pooled = ein::reduce(image, "c (h 2) (w 3) -> c h w", "max");
  std::printf("max over 2 x 3 windows    %s\n", ein::to_string(pooled).c_str());

  // einsum multiplies operands and sums over what the output lacks.
  const ein::Tensor weight = ein::ones({8, 3});
  const ein::Tensor features =
      ein::einsum(patches, weight, "patch pixel, pixel feature -> patch feature");
  std::printf("features                  %s\n", features.shape().to_string().c_str());

  // Brackets mark the axis that an operation works along.
  const ein::Tensor probabilities = ein::softmax(features, "patch [feature]");
  std::printf("softmax sums to           %g\n",
              ein::reduce(probabilities, "patch feature ->", "sum").item() / 6);

  // A mistake in the sizes says where it is.
  try {
    ein::einsum(patches, ein::ones({7, 3}), "patch pixel, pixel feature -> patch feature");
  } catch (const ein::Error& error) {
    std::printf("\n%s\n", error.what());
  }
}
