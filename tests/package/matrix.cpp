// What ein::eigen brings: ein between Eigen's matrices.
#include <cstdio>
#include <ein/eigen.hpp>
#include <ein/ops.hpp>

int main() {
  const Eigen::MatrixXf a = Eigen::MatrixXf::Random(3, 4);
  const ein::Tensor turned = ein::rearrange(ein::from_eigen(a), "i j -> j i");
  const bool right = ein::as_matrix<float>(turned.clone()) == a.transpose();
  std::puts(right ? "ein works with Eigen" : "ein computes something else");
  return right ? 0 : 1;
}
