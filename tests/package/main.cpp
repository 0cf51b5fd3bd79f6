// The smallest program outside ein that needs its headers, its grammar's headers and its library.
#include <cstdio>
#include <ein/tensor.hpp>

int main() {
  const auto storage = ein::Storage::allocate(6 * sizeof(float));
  const ein::Tensor x(storage, ein::DType::f32, {2, 3}, {3, 1});
  x.fill(1.5);
  const bool right = x.to_vector<float>() == std::vector<float>(6, 1.5f);
  std::puts(right ? "ein works" : "ein computes something else");
  return right ? 0 : 1;
}
