// Assignment 2, section 2: data parallelism. Each process has half of the rows and weights of its
// own; gradients are summed one by one, or all as one flat tensor, or in buckets as they come. All
// three give the weights of one process.
//
//     ein launch -n 2 -- build/samples/cs336_17_data_parallel
#include <cstdio>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/mesh.hpp>

using ein::Tensor;
using namespace ein::literals;
using Tensors = std::vector<Tensor>;

/// The mean squared error of three layers; r is the process, b its rows.
Tensor loss(const Tensor& x, const Tensor& y, const Tensors& w) {
  Tensor h = x;
  for (std::size_t i = 0; i < w.size(); ++i) {
    h = einsum(h, w[i], "r b i, r i o -> r b o");
    if (i + 1 < w.size()) h = ein::relu(h);
  }
  return reduce((h - y) * (h - y), "r b o -> r", "mean");
}

/// Means over the processes, tensors joined in buckets of so many: each bucket is one all_reduce.
Tensors averaged(const Tensors& gradients, std::size_t each) {
  Tensors means;
  for (std::size_t first = 0; first < gradients.size(); first += each) {
    const auto end = std::min(first + each, gradients.size());
    const ein::Packed bucket = ein::pack(std::span(gradients).subspan(first, end - first), "r *");
    const Tensor mean = reduce(bucket.tensor, "r e -> e", "mean");
    for (const Tensor& part : ein::unpack(mean, bucket.shapes, "*")) means.push_back(part);
  }
  return means;
}

struct Run {
  Tensors weights;  // (i, o)
  std::int64_t calls = 0, bytes = 0;
};

Run trained(const ein::Mesh& mesh, const Tensor& x, const Tensor& y, Tensors w, std::size_t each) {
  const int n = mesh.size();
  const auto rows = [&](const Tensor& t) {
    return ein::place(rearrange(t, "(r b) i -> r b i", "r"_a = n), mesh, "r@data b i");
  };
  const Tensor mine = rows(x), wanted = rows(y);
  auto gradients_of = [&](const Tensors& of) {
    Tensors own;
    for (const Tensor& t : of)
      own.push_back(
          ein::place(repeat(t, "i o -> r i o", "r"_a = n), mesh, "r@data i o").requires_grad(true));
    const Tensor losses = loss(mine, wanted, own);
    return averaged(ein::gradients(losses, ein::full_like(losses, 1.0, losses.dtype()), own), each);
  };
  Run run{std::move(w)};
  for (int i = 0; i < 5; ++i) {
    const Tensors means = gradients_of(run.weights);
    for (std::size_t k = 0; k < means.size(); ++k) run.weights[k] = run.weights[k] - 0.1 * means[k];
  }
  for (const ein::Exchange& e : mesh.exchanged()) run.calls += e.calls, run.bytes += e.bytes;
  return run;
}

int main() {
  ein::manual_seed(0);
  const Tensor x = ein::randn({20, 10}), y = ein::randn({20, 5});
  const Tensors start{ein::randn({10, 10}) * 0.3, ein::randn({10, 50}) * 0.3,
                      ein::randn({50, 5}) * 0.1};
  Tensors alone = start;  // one process with all rows
  for (int i = 0; i < 5; ++i) {
    Tensors w;
    for (const Tensor& t : alone) w.push_back(rearrange(t, "i o -> 1 i o").requires_grad(true));
    const Tensor of_all =
        rearrange(loss(rearrange(x, "b i -> 1 b i"), rearrange(y, "b o -> 1 b o"), w), "1 ->");
    const Tensors g = ein::gradients(of_all, w);
    for (std::size_t k = 0; k < w.size(); ++k)
      alone[k] = alone[k] - 0.1 * rearrange(g[k], "1 i o -> i o");
  }
  for (const auto& [name, each] :
       {std::pair("one by one", 1), std::pair("flat", 3), std::pair("buckets of 2", 2)}) {
    const ein::Mesh mesh({{"data", 2}});
    const Run run = trained(mesh, x, y, start, static_cast<std::size_t>(each));
    double off = 0;
    for (std::size_t k = 0; k < alone.size(); ++k)
      off = std::max(off, reduce(abs(run.weights[k] - alone[k]), "i o ->", "max").item<double>());
    if (mesh.rank() == 0)
      std::printf("%-12s %lld all_reduces a step, %lld bytes; weights %s one process's\n", name,
                  static_cast<long long>(run.calls / 5), static_cast<long long>(run.bytes / 5),
                  off < 1e-5 ? "are" : "are not");
  }
  // In a compiled step nobody sums: rows lie over `data`, and so what is summed over rows is summed
  // over processes, while the backward pass goes on.
  const ein::Mesh mesh({{"data", 2}});
  Tensors w;
  for (const Tensor& t : start) w.push_back(t.contiguous().requires_grad(true));
  auto step = ein::compile([&](const Tensor& a, const Tensor& b) {
    const Tensor h =
        ein::relu(einsum(ein::relu(einsum(a, w[0], "b i, i o -> b o")), w[1], "b i, i o -> b o"));
    return ein::gradients(ein::mse_loss(einsum(h, w[2], "b i, i o -> b o"), b), w);
  });
  step.prepare(ein::place(x, mesh, "b@data i"), ein::place(y, mesh, "b@data o"));
  if (mesh.rank() == 0) std::printf("compiled: %s", ein::to_string(step.exchanges()).c_str());
}
