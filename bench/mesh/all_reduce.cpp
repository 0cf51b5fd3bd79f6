// All-reduce over shared memory: ein launch -n 2 -- ein_all_reduce_bench
#include "mesh/shm.hpp"
#include "times.hpp"

int main() {
  const auto transport = ein::mesh::open_shm();
  ein::mesh::Group& all = transport->all();
  print_times(
      transport->rank() == 0, [&] { all.barrier(); },
      [&](const float* from, float* to, std::int64_t count) {
        all.all_reduce(from, to, count, ein::DType::f32);
      });
}
