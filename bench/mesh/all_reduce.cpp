// The time of an all-reduce of f32: `ein launch -n 2 -- ein_all_reduce_bench`, or under mpirun with
// the word "mpi", which then measures MPI_Allreduce through ein's plug-in.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "mesh/shm.hpp"

int main() {
  using Clock = std::chrono::steady_clock;
  const auto transport = ein::mesh::open_shm();
  ein::mesh::Group& all = transport->all();
  for (const std::int64_t bytes : {std::int64_t{4}, std::int64_t{4} << 10, std::int64_t{64} << 10, std::int64_t{1} << 20, std::int64_t{64} << 20}) {
    std::vector<float> x(static_cast<std::size_t>(bytes) / sizeof(float), 1.0f), y(x.size());
    const int rounds = bytes > (1 << 20) ? 21 : 201;
    std::vector<double> seconds;
    for (int i = 0; i < rounds; ++i) {
      all.barrier();
      const auto begin = Clock::now();
      all.all_reduce(x.data(), y.data(), static_cast<std::int64_t>(x.size()), ein::DType::f32);
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    std::sort(seconds.begin(), seconds.end());
    if (transport->rank() == 0)
      std::printf("%9lld bytes  median %9.1f us  least %9.1f us\n", static_cast<long long>(bytes),
                  1e6 * seconds[seconds.size() / 2], 1e6 * seconds[0]);
  }
}
