// The smallest program outside ein that needs its headers, its grammar's headers and its library.
#include <cstdio>
#include <ein/error.hpp>
#include <ein/tensor.hpp>
#include <ein/version.hpp>

int main() try {
  const auto storage = ein::Storage::allocate(6 * sizeof(float));
  const ein::Tensor x(storage, ein::DType::f32, {2, 3}, {3, 1});
  x.fill(1.5);
  const bool right = x.to_vector<float>() == std::vector<float>(6, 1.5f);
  std::printf("ein %d.%d %s\n", EIN_VERSION_MAJOR, EIN_VERSION_MINOR,
              right ? "works" : "computes something else");
  return right ? 0 : 1;
} catch (const ein::Error& error) {
  std::printf("error: %s\n", error.what());
  return 3;
}
