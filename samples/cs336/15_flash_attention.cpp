// Assignment 2, section 1: FlashAttention's form. Forward, tiles of keys pass by while a maximum, a
// sum and a result are kept for each query; backward, probabilities are computed again from L = log
// Σ exp. No matrix of queries and keys is kept.
#include <cmath>
#include <cstdio>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>

using ein::Tensor;
constexpr std::int64_t tile = 16;

/// Scores (b q k) of one tile of keys, which begins at key `first`.
Tensor scores_of(const Tensor& q, const Tensor& k, std::int64_t first, bool causal) {
  const Tensor s =
      einsum(q, k, "b q d, b k d -> b q k") / std::sqrt(static_cast<double>(q.shape()[2]));
  return causal ? tril(s, "b [q k]", -first, -INFINITY) : s;
}
Tensor tile_of(const Tensor& x, std::int64_t first) {
  return x.at({ein::every, ein::slice(first, first + tile)});
}

/// O and L.
std::vector<Tensor> flash_forward(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  const std::int64_t b = q.shape()[0], n = q.shape()[1], d = q.shape()[2];
  Tensor most = ein::full({b, n, 1}, -INFINITY), sum = ein::zeros({b, n, 1}),
         out = ein::zeros({b, n, d});
  for (std::int64_t first = 0; first < n; first += tile) {
    const Tensor s = scores_of(q, tile_of(k, first), first, causal);
    const Tensor now = maximum(most, reduce(s, "b q k -> b q 1", "max"));
    const Tensor p = exp(s - now), old = exp(most - now);
    sum = old * sum + reduce(p, "b q k -> b q 1", "sum");
    out = old * out + einsum(p, tile_of(v, first), "b q k, b k d -> b q d");
    most = now;
  }
  return {out / sum, most + log(sum)};
}

/// D = rowsum(O dO); dV = Pᵀ dO; dS = P (dO Vᵀ - D); dQ = dS K / √d; dK = dSᵀ Q / √d.
std::vector<Tensor> flash_backward(const Tensor& d_out, const std::vector<Tensor>& results,
                                   const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape()[2]));
  const Tensor of_rows = reduce(results[0] * d_out, "b q d -> b q 1", "sum");
  Tensor dq = ein::zeros(q.shape());
  std::vector<Tensor> dk, dv;
  for (std::int64_t first = 0; first < k.shape()[1]; first += tile) {
    const Tensor keys = tile_of(k, first), values = tile_of(v, first);
    const Tensor p = exp(scores_of(q, keys, first, causal) - results[1]);
    const Tensor ds = p * (einsum(d_out, values, "b q d, b k d -> b q k") - of_rows) * scale;
    dv.push_back(einsum(p, d_out, "b q k, b q d -> b k d"));
    dk.push_back(einsum(ds, q, "b q k, b q d -> b k d"));
    dq = dq + einsum(ds, keys, "b q k, b k d -> b q d");
  }
  return {dq, ein::pack(dk, "b * d").tensor, ein::pack(dv, "b * d").tensor};
}

int main() {
  ein::manual_seed(0);
  const Tensor q = ein::randn({4, 128, 64}), k = ein::randn({4, 128, 64}),
               v = ein::randn({4, 128, 64}), g = ein::randn({4, 128, 64});
  for (const bool causal : {false, true}) {
    const auto flash =
        ein::custom([=](const Tensor& a, const Tensor& b,
                        const Tensor& c) { return flash_forward(a, b, c, causal); },
                    [=](const std::vector<Tensor>& cotangents, const std::vector<Tensor>& results,
                        const Tensor& a, const Tensor& b, const Tensor& c) {
                      return flash_backward(cotangents[0], results, a, b, c, causal);
                    });
    const auto plain = [=](const Tensor& a, const Tensor& b, const Tensor& c) {
      return einsum(softmax(scores_of(a, b, 0, causal), "b q [k]"), c, "b q k, b k d -> b q d");
    };
    const auto with_gradients = [&](const auto& attend) {
      return [=](const Tensor& a, const Tensor& b, const Tensor& c) {
        for (const Tensor& x : {a, b, c}) x.zero_grad();
        const Tensor out = attend(a, b, c);
        out.backward(g);
        return std::vector{out.detach(), a.grad(), b.grad(), c.grad()};
      };
    };
    for (const Tensor& x : {q, k, v}) x.requires_grad(true);
    const std::vector<Tensor> ours =
        with_gradients([&](auto&... x) { return flash(x...)[0]; })(q, k, v);
    auto program = ein::compile([&] { return with_gradients(plain)(q, k, v); });
    const std::vector<Tensor> wanted = with_gradients(plain)(q, k, v), compiled = program();
    double off = 0, off_compiled = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      off = std::max(off, reduce(abs(ours[i] - wanted[i]), "... ->", "max").item<double>());
      off_compiled = std::max(off_compiled,
                              reduce(abs(compiled[i] - wanted[i]), "... ->", "max").item<double>());
    }
    std::printf("%s: result and gradients by tiles %s plain attention's\n",
                causal ? "causal" : "plain", off < 1e-5 ? "are, to 1e-5," : "are not");
    const std::size_t scores = 4 * 128 * 128 * 4;
    std::printf("  ein's program of plain attention %s, and keeps %s of %zu bytes of scores\n",
                off_compiled < 1e-5 ? "gives the same" : "gives others",
                program.bill().activations < scores / 10 ? "less than a tenth" : "much", scores);
  }
}
