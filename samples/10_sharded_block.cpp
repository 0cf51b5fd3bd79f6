// A Transformer block over processes: the batch is split over the mesh axis "data", heads and inner
// features over "model". Weights and input are placed by hand; where all else lies follows, and a
// type that says otherwise does not compile. Where an axis that is summed over is split, processes
// add their parts: twice in this block.
//
//     ein launch -n 4 -- ./sample_10_sharded_block     four processes
//     ./sample_10_sharded_block                        one that stands for all of them
#include <cmath>
#include <cstdio>

#include <ein/ein.hpp>
#include <ein/mesh.hpp>

using namespace ein::literals;

using Stream = ein::Float<"b@data s c">;  // (batch, positions, features)

struct Weights {
  ein::Float<"n h@model c d"> qkv;  // n: query, key, value
  ein::Float<"h@model d c"> out;
  ein::Float<"c f@model"> up;
  ein::Float<"f@model c"> down;
};

Stream block(const Stream& x, const Weights& w) {
  const auto qkv = ein::einsum(ein::layer_norm(x, "b s [c]"), w.qkv, "b s c, n h c d -> n b h s d");
  const ein::Float<"b@data h@model q d"> q = qkv[0];
  const ein::Float<"b@data h@model k d"> k = qkv[1], v = qkv[2];
  const auto scores = ein::einsum(q, k, "b h q d, b h k d -> b h q k"_p);
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape()[3]));
  const auto weights =
      ein::softmax(ein::tril(scores * scale, "... [i j]", 0, -INFINITY), "b h q [k]");
  const auto mixed = ein::einsum(weights, v, "b h q k, b h k d -> b h q d");
  const Stream y = x + ein::einsum(mixed, w.out, "b h q d, h d c -> b q c");  // sums over model
  const auto inner = ein::einsum(ein::layer_norm(y, "b s [c]"), w.up, "b s c, c f -> b s f");
  return y + ein::einsum(ein::gelu(inner), w.down, "b s f, f c -> b s c");  // sums over model
}

int main() {
  const ein::Mesh mesh({{"data", 2}, {"model", 2}});
  ein::manual_seed(1);
  const ein::Tensor x = ein::randn({4, 16, 32}), qkv = ein::randn({3, 4, 32, 8}) * 0.1,
                    out = ein::randn({4, 8, 32}) * 0.1, up = ein::randn({32, 128}) * 0.1,
                    down = ein::randn({128, 32}) * 0.1;
  const Stream z =
      block(ein::place(x, mesh, "b@data s c"),
            {ein::place(qkv, mesh, "n h@model c d"), ein::place(out, mesh, "h@model d c"),
             ein::place(up, mesh, "c f@model"), ein::place(down, mesh, "f@model c")});
  const ein::Tensor norm = ein::sqrt(ein::reduce(z * z, "b s c ->", "sum"));
  if (mesh.rank() != 0) return 0;
  std::printf("%d processes over %s; each has %s of %s\n", mesh.size(),
              std::string(mesh.transport()).c_str(), z.local().shape().to_string().c_str(),
              z.shape().to_string().c_str());
  std::printf("norm %.4f\n", norm.item());
  for (const ein::Exchange& exchange : mesh.exchanged())
    std::printf("%s over %s: %lld calls, %lld bytes of each process\n",
                std::string(name(exchange.collective)).c_str(), exchange.over.front().c_str(),
                static_cast<long long>(exchange.calls), static_cast<long long>(exchange.bytes));
}
