// Assignment 2, section 2: a feed-forward layer of three matrices (D, F), B rows, on N devices of C
// FLOP/s that send W bytes/s: what data, fully sharded and tensor parallelism send, counted from
// compiled programs (at 2 bytes a number), and up to how many devices that is hidden behind the
// products.
#include <cmath>
#include <cstdio>
#include <string>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/hardware.hpp>
#include <ein/mesh.hpp>

using ein::Tensor;
constexpr int N = 4;
constexpr std::int64_t B = 64, D = 32, F = 128;

/// Patterns in which x (b d), gate and up side by side (n d f), and down (f d) lie.
struct Way {
  const char *name, *x, *up, *down;
};

struct Sent {
  double flops = 0, bytes = 0;  // of a device, a number as 2 bytes
};

Sent counted(const ein::Mesh& mesh, const Way& way, bool backward) {
  const auto made = [&](const ein::Shape& shape, const char* pattern) {
    return ein::place(ein::ones(shape), mesh, ein::runtime(pattern)).requires_grad(backward);
  };
  const Tensor x = made({B, D}, way.x), up = made({2, D, F}, way.up), down = made({F, D}, way.down);
  const bool sharded = std::string(way.name) == "FSDP";
  const auto whole = [&](const Tensor& w) { return sharded ? ein::gather_over(w, "data") : w; };
  auto program = ein::compile([&] {
    const Tensor both = einsum(x, whole(up), "b d, n d f -> n b f");
    const Tensor y = einsum(ein::silu(both[0]) * both[1], whole(down), "b f, f d -> b d");
    std::vector<Tensor> results{y};
    if (backward)
      for (const Tensor& g :
           ein::gradients(y, ein::full_like(y, 1.0, y.dtype()), std::vector{x, up, down}))
        results.push_back(g);
    return results;
  });
  program.prepare();
  Sent sent{.flops = program.cost().matmul_only.approximate()};
  for (const ein::Exchange& e : program.exchanges()) sent.bytes += e.sent_by_ring() / 2;
  return sent;
}

int main() {
  const Way ways[] = {{"DP", "b@data d", "n d f", "f d"},
                      {"FSDP", "b@data d", "n d@data f", "f@data d"},
                      {"TP", "b d", "n d f@data", "f@data d"}};
  const double part = (N - 1.0) / N, bdf = static_cast<double>(B * D * F) / N;
  const auto df = static_cast<double>(D * F), bd = static_cast<double>(B * D);
  for (const Way& way : ways) {
    const ein::Mesh mesh({{"data", N}});
    const Sent forward = counted(mesh, way, false), all = counted(mesh, way, true);
    const bool by_rows = way.name[0] == 'T';  // what is sent are rows (B, D), not matrices (D, F)
    const double unit = (by_rows ? bd : df) * part;
    const char* const of = by_rows ? "BD" : "DF";
    std::printf("%-5s forward: %2.0f BDF/N FLOPs, %2.0f %s (N-1)/N bytes\n", way.name,
                forward.flops / bdf, forward.bytes / unit, of);
    std::printf("%-5s backward: %.0f BDF/N FLOPs, %2.0f %s (N-1)/N bytes\n", way.name,
                (all.flops - forward.flops) / bdf, (all.bytes - forward.bytes) / unit, of);
  }
  const ein::Hardware b200 = ein::hardware_named("b200");
  const double c = *b200.peak(ein::DType::bf16), w = b200.links.nvlink, f = 12288;
  std::printf("B200: C / W = %.0f FLOPs a byte; F = 12,288\n", c / w);
  for (const double b : {8192.0, 65536.0, 1048576.0}) {
    const double dp = 1 + b * w / c, tp = 1 + 3 * f * w / (2 * c);
    const double s = 3 * b * f * w / c + 3 * f + 2 * b;
    std::printf(
        "B %7.0f: N at most %.1f by DP or FSDP, %.1f by TP, %.1f by both, %.1f by both in turn\n",
        b, dp, tp, dp * tp, s * s / (24 * b * f));
  }
}
