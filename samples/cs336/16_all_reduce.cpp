// Assignment 2, section 2: all_reduce of several sizes, and what a ring sends.
//
//     ein launch -n 4 -- build/samples/cs336_16_all_reduce full    4 processes, up to 1 GB
//     build/samples/cs336_16_all_reduce                            one that stands for two
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <ein/ein.hpp>
#include <ein/mesh.hpp>

using ein::Tensor;

int main(int argc, char** argv) {
  const bool full = argc > 1 && std::string_view(argv[1]) == "full";
  const char* launched = std::getenv("EIN_SIZE");
  const int n = launched ? std::atoi(launched) : 2;
  const ein::Mesh mesh({{"rank", n}});
  const bool prints = mesh.rank() == 0;
  const std::vector<std::int64_t> sizes =
      full ? std::vector<std::int64_t>{1, 10, 100, 1000} : std::vector<std::int64_t>{1, 4};
  for (const std::int64_t megabytes : sizes) {
    // Row r is that of process r.
    const Tensor rows = ein::place(ein::repeat(ein::arange(n).to(ein::DType::f32), "r -> r e",
                                               ein::axis("e", megabytes * 250000)),
                                   mesh, "r@rank e");
    ein::reduce(rows, "r e -> e", "sum");
    const auto before = mesh.exchanged();
    const auto begin = std::chrono::steady_clock::now();
    Tensor sum;
    for (int i = 0; i < 5; ++i) sum = ein::reduce(rows, "r e -> e", "sum");
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 5;
    const auto given = mesh.exchanged().front().bytes - before.front().bytes;
    if (!prints) continue;
    const double wanted = n * (n - 1) / 2.0, off = reduce(abs(sum - wanted), "e ->", "max").item();
    std::printf("all_reduce of %lld MB over %d ranks: %s sum, %lld bytes of a process each time\n",
                static_cast<long long>(megabytes), n, off == 0 ? "the right" : "a wrong",
                static_cast<long long>(given / 5));
    std::printf("  %.3f ms, %.2f GB/s\n", 1e3 * seconds,
                1e6 * static_cast<double>(megabytes) / seconds / 1e9);
  }
  if (!prints) return 0;
  // A ring that hands whole tensors on sends n - 1 of them; in parts it sends 2(n - 1)/n.
  for (const int ranks : {2, 4, 8})
    std::printf("%d ranks: whole tensors send %.2f S, parts %.2f S, so %.1f times as much\n", ranks,
                ranks - 1.0,
                ein::Exchange{ein::Collective::all_reduce, {}, ranks, 1, 1}.sent_by_ring() * 1.0,
                ranks / 2.0);
}
