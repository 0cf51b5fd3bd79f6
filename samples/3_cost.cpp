// Cost: what a computation will take, exactly, before it runs.
#include <cstdio>

#include <ein/call.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include <ein/hardware.hpp>
#include <ein/napkin.hpp>

int main() {
  // A matrix product of 16384 x 32768 by 32768 x 8192 numbers: no tensor is made.
  const ein::Graph graph = ein::graph_of(ein::Operation::einsum, ein::runtime("b d, d k -> b k"),
                                         {{16384, 32768}, {32768, 8192}});
  const ein::Cost cost = ein::cost(graph);
  std::printf("model FLOPs      %s\n", cost.model.to_string().c_str());
  std::printf("multiplications  %s\nadditions        %s\n", cost.mul.to_string().c_str(),
              cost.add.to_string().c_str());
  std::printf("bytes            %s\n", cost.bytes().to_string().c_str());
  std::printf("as a formula     %s\n", ein::cost_formula(graph).model.to_string().c_str());

  // How long at least, on a device with its promised peak and bandwidth.
  const ein::Hardware& h100 = ein::hardware_named("h100-sxm");
  const ein::Roofline bound = ein::roofline(cost, h100, ein::DType::bf16);
  std::printf("on an H100       %.2f ms at least, bound by %s\n", 1e3 * bound.seconds,
              std::string(ein::name(bound.bound)).c_str());

  // What really runs can be counted as well.
  ein::CostScope scope;
  const ein::Tensor x = ein::randn({64, 128}), w = ein::randn({128, 32});
  ein::einsum(x, w, "b d, d k -> b k");
  std::printf("counted          %s FLOPs in a product of 64 x 128 x 32\n",
              scope.total().matmul_only.to_string().c_str());
}
