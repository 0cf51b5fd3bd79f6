// Assignment 2, section 1: attention by the size of a head and the length, call by call and
// compiled: times of both passes, and what is kept between them. `cs336_14_attention full` takes
// the handout's lengths, up to 16,384, of which a matrix of scores has 8 GiB.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/memory.hpp>

using ein::Tensor;

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape()[2]));
  const Tensor scores = einsum(q, k, "b q d, b k d -> b q k") * scale;
  return einsum(softmax(scores, "b q [k]"), v, "b q k, b k d -> b q d");
}

double milliseconds(const auto& run) {
  run();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
             .count() /
         3;
}

int main(int argc, char** argv) {
  const bool full = argc > 1 && std::string_view(argv[1]) == "full";
  const std::vector<std::int64_t> sizes =
      full ? std::vector<std::int64_t>{16, 32, 64, 128} : std::vector<std::int64_t>{16, 64};
  const std::vector<std::int64_t> lengths =
      full ? std::vector<std::int64_t>{256, 1024, 4096, 8192, 16384}
           : std::vector<std::int64_t>{64, 128, 256};
  std::printf("   d      T  scores, MiB  kept: by calls  compiled  |  ms: calls, compiled\n");
  for (const std::int64_t d : sizes) {
    for (const std::int64_t t : lengths) {
      ein::manual_seed(0);
      const Tensor q = ein::randn({8, t, d}).requires_grad(true),
                   k = ein::randn({8, t, d}).requires_grad(true),
                   v = ein::randn({8, t, d}).requires_grad(true);
      const Tensor g = ein::ones({8, t, d});
      const auto both = [&] {
        for (const Tensor& x : {q, k, v}) x.zero_grad();
        const Tensor out = attention(q, k, v);
        out.backward(g);
        return std::vector{out.detach(), q.grad(), k.grad(), v.grad()};
      };
      auto compiled = ein::compile(both);
      const std::size_t before = ein::memory_allocated();
      Tensor out = attention(q, k, v);
      const double kept = static_cast<double>(ein::memory_allocated() - before - out.nbytes());
      out = Tensor();
      const double calls = milliseconds(both), program = milliseconds([&] { compiled(); });
      const double scores = 8.0 * 4 * static_cast<double>(t * t);
      std::printf("%4lld %6lld %12.2f %15.2f %9.2f\n", static_cast<long long>(d),
                  static_cast<long long>(t), scores / (1 << 20), kept / (1 << 20),
                  static_cast<double>(compiled.bill().activations) / (1 << 20));
      std::printf("%56s %.2f, %.2f\n", "", calls, program);
    }
  }
  for (const double t : {8192.0, 16384.0})
    std::printf("scores of 8 x %.0f x %.0f in f32: %.0f GiB\n", t, t, 8 * t * t * 4 / (1 << 30));
}
