// What measured_cpu() times.
#include <cstring>

#include "cpu/level/gemm_kernel.hpp"
#include "cpu/level/kernels.hpp"

namespace ein::host::EIN_LEVEL {

template <class C>
double multiply_add(std::int64_t steps) {
  // More than latency times units of any processor (4 · 2 or 5 · 2), and few enough for 16
  // registers.
  constexpr int chains = 12;
  // x tends to 1, so the values neither overflow nor become subnormal.
  const Vector<C> decay = Vector<C>{} + C(0.75), rest = Vector<C>{} + C(0.25);
  Vector<C> x[chains];
  repeat<chains>([&](auto i) { x[i] = Vector<C>{} + static_cast<C>(i); });
  for (std::int64_t step = 0; step < steps; ++step) {
    repeat<chains>([&](auto i) { x[i] = x[i] * decay + rest; });
  }
  repeat<chains>([&](auto i) { keep(x[i]); });
  return 2.0 * vector_width<C> * chains * static_cast<double>(steps);
}
template double multiply_add<float>(std::int64_t);
template double multiply_add<double>(std::int64_t);

std::uint64_t checksum(const std::byte* from, std::size_t bytes) {
  using Words = Vector<std::uint64_t>;
  Words sums[8] = {};
  const std::size_t block = 8 * vector_bytes;
  for (std::size_t at = 0; at + block <= bytes; at += block) {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(from + at);
    for (int i = 0; i < 8; ++i) sums[i] += load(words + i * vector_width<std::uint64_t>);
  }
  std::uint64_t sum = 0;
  for (const Words& s : sums) {
    for (int lane = 0; lane < vector_width<std::uint64_t>; ++lane) sum += s[lane];
  }
  return sum;
}

}  // namespace ein::host::EIN_LEVEL
