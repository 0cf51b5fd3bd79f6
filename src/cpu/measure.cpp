// The micro-benchmark of this machine's processors, and the file that remembers what it found.
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#include <ein/error.hpp>
#include <ein/hardware.hpp>

#include "cpu/measure.hpp"
#include "cpu/parallel.hpp"
#include "io/file.hpp"
#include "io/xxh64.hpp"
#include "tensor/memory_count.hpp"

namespace ein {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX__)
constexpr std::size_t vector_bytes = 32;
#else
constexpr std::size_t vector_bytes = 16;
#endif
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
constexpr bool has_fma = true;
#else
constexpr bool has_fma = false;
#endif
/// Changes when the benchmark does, so that older files are measured anew.
constexpr int measurement_version = 2;

template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(vector_bytes)));
};

/// More than latency times units of any processor (4 · 2 or 5 · 2), and few enough for 16
/// registers.
constexpr std::size_t chains = 12;

template <class T, std::size_t... I>
T multiply_add(std::int64_t steps, std::index_sequence<I...>) {
  using Vector = typename VectorOf<T>::Type;
  // x tends to 1, so the values neither overflow nor become subnormal.
  const Vector decay = Vector{} + T(0.75), rest = Vector{} + T(0.25);
  std::array<Vector, chains> x{(Vector{} + T(I))...};
  for (std::int64_t step = 0; step < steps; ++step) ((x[I] = x[I] * decay + rest), ...);
  return (x[I][0] + ...);
}

/// The compiler must compute it.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "m"(value) : "memory");
}

double seconds_now(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class T>
struct MultiplyAdds {
  static constexpr double flops = 2.0 * (vector_bytes / sizeof(T));  // of one instruction
  static T run(std::int64_t steps) {
    return multiply_add<T>(steps, std::make_index_sequence<chains>());
  }
};

#if defined(__AVX512BF16__)
/// Sums of products of pairs, in f32.
template <>
struct MultiplyAdds<bf16> {
  static constexpr double flops = 4.0 * (vector_bytes / sizeof(float));
  static float run(std::int64_t steps) { return run(steps, std::make_index_sequence<chains>()); }

 private:
  template <std::size_t... I>
  static float run(std::int64_t steps, std::index_sequence<I...>) {
    const __m512bh small = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0x1p-10F), _mm512_set1_ps(0x1p-10F));
    __m512 x[chains] = {_mm512_set1_ps(static_cast<float>(I))...};
    for (std::int64_t step = 0; step < steps; ++step)
      ((x[I] = _mm512_dpbf16_ps(x[I], small, small)), ...);
    return (x[I][0] + ...);
  }
};
#else
/// They compute in f32.
template <>
struct MultiplyAdds<bf16> : MultiplyAdds<float> {};
#endif

/// FLOP/s of all threads: of several runs the best, of each run the slowest thread, by the time
/// that it had a processor. So another program's share of the machine does not count.
template <class T>
double measure_flops(int threads) {
  constexpr std::int64_t steps = 500'000;
  std::vector<double> seconds(static_cast<std::size_t>(threads));
  double best = INFINITY;
  for (int run = 0; run < 25; ++run) {
    host::parallel_for(threads, [&](std::int64_t part) {
      const double begin = seconds_now(CLOCK_THREAD_CPUTIME_ID);
      keep(MultiplyAdds<T>::run(steps));
      seconds[static_cast<std::size_t>(part)] = seconds_now(CLOCK_THREAD_CPUTIME_ID) - begin;
    });
    best = std::min(best, *std::max_element(seconds.begin(), seconds.end()));
  }
  return MultiplyAdds<T>::flops * steps * chains * threads / std::max(best, 1e-9);
}

std::uint64_t checksum(const std::byte* from, std::size_t bytes) {
  typedef std::uint64_t Vector __attribute__((vector_size(vector_bytes), aligned(8), may_alias));
  Vector sums[8] = {};
  const std::size_t block = 8 * vector_bytes;
  for (std::size_t at = 0; at + block <= bytes; at += block) {
    const auto* v = reinterpret_cast<const Vector*>(from + at);
    for (std::size_t i = 0; i < 8; ++i) sums[i] += v[i];
  }
  std::uint64_t sum = 0;
  for (const Vector& v : sums) {
    for (std::size_t lane = 0; lane < vector_bytes / sizeof sum; ++lane) sum += v[lane];
  }
  return sum;
}

/// Twice the largest cache, for each of two arrays, but little of the memory.
std::size_t array_bytes() {
  const double cache = static_cast<double>(::sysconf(_SC_LEVEL3_CACHE_SIZE));
  const double most = std::max(physical_memory() / 16, 0x1p24);
  return static_cast<std::size_t>(std::min(std::max(2 * cache, 0x1p26), most));
}

/// The shortest of several runs over `parts`: what else the machine does only ever adds time.
double best_seconds(std::int64_t parts, const host::Task& task) {
  double best = INFINITY;
  for (int run = 0; run < 10; ++run) {
    const double begin = seconds_now(CLOCK_MONOTONIC);
    host::parallel_for(parts, task);
    best = std::min(best, seconds_now(CLOCK_MONOTONIC) - begin);
  }
  return std::max(best, 1e-9);
}

/// Many small parts: a thread that is held up leaves more of them to the others. The size of a
/// large page.
constexpr std::size_t part_bytes = std::size_t{2} << 20;

using Array = std::unique_ptr<std::byte[], decltype(&std::free)>;

/// In large pages where there are any: small ones take longer to fill than to measure.
Array make_array(std::size_t bytes) {
  Array array(static_cast<std::byte*>(std::aligned_alloc(part_bytes, bytes)), &std::free);
  if (array) ::madvise(array.get(), bytes, MADV_HUGEPAGE);
  return array;
}

void measure_bandwidth(CpuLimits& limits) {
  const std::size_t parts = array_bytes() / part_bytes;
  const std::size_t bytes = parts * part_bytes;
  const Array from = make_array(bytes), to = make_array(bytes);
  if (!from || !to) {
    throw Error(ErrorKind::memory,
                "measure_cpu: two arrays of " + std::to_string(bytes) + " bytes do not fit");
  }
  const auto count = static_cast<std::int64_t>(parts);
  const auto offset = [](std::int64_t part) { return static_cast<std::size_t>(part) * part_bytes; };
  host::parallel_for(count, [&](std::int64_t part) {
    std::memset(from.get() + offset(part), 1, part_bytes);
    std::memset(to.get() + offset(part), 2, part_bytes);
  });
  const double read_seconds = best_seconds(
      count, [&](std::int64_t part) { keep(checksum(from.get() + offset(part), part_bytes)); });
  const double copy_seconds = best_seconds(count, [&](std::int64_t part) {
    std::memcpy(to.get() + offset(part), from.get() + offset(part), part_bytes);
    keep(to[offset(part)]);
  });
  limits.read = static_cast<double>(bytes) / read_seconds;
  limits.copy = 2 * static_cast<double>(bytes) / copy_seconds;
}

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

// --- the file ---

std::string digits(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// The rates, as lines of the file name them.
constexpr std::pair<std::string_view, double CpuLimits::*> rates[] = {{"f32 ", &CpuLimits::f32},
                                                                      {"f64 ", &CpuLimits::f64},
                                                                      {"bf16 ", &CpuLimits::bf16},
                                                                      {"read ", &CpuLimits::read},
                                                                      {"copy ", &CpuLimits::copy}};

/// What must be the same for a measurement to hold.
std::string key_of(const std::string& model, int threads) {
  return "ein cpu limits " + std::to_string(measurement_version) + "\nprocessor " + model +
         "\nthreads " + std::to_string(threads) + "\nvectors " + std::to_string(vector_bytes) +
         (has_fma ? " fma" : "") + "\n";
}

}  // namespace

std::string host::limits_text(const CpuLimits& limits) {
  std::string text = key_of(limits.model, limits.threads);
  for (const auto& [name, rate] : rates) text += std::string(name) + digits(limits.*rate) + "\n";
  return text + "sum " + io::hex(io::xxh64(text)) + "\n";
}

namespace {

/// Reads "name 1.5e9\n" off the front.
bool take(std::string_view& text, std::string_view name, double& value) {
  if (!text.starts_with(name)) return false;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data() + name.size(), end, value);
  if (error != std::errc() || after == end || *after != '\n' || !std::isfinite(value) || value <= 0)
    return false;
  text.remove_prefix(static_cast<std::size_t>(after + 1 - text.data()));
  return true;
}

}  // namespace

bool host::read_limits(std::string_view text, CpuLimits& limits) {
  const std::string key = key_of(limits.model, limits.threads);
  if (!text.starts_with(key)) return false;
  std::string_view rest = text.substr(key.size());
  for (const auto& [name, rate] : rates) {
    if (!take(rest, name, limits.*rate)) return false;
  }
  return text == limits_text(limits);
}

namespace {

/// The user's own directory for what ein keeps, made if need be; empty if there can be none.
std::string private_directory() {
  std::string path = io::user_cache();
  if (path.empty()) return "";
  ::mkdir(path.c_str(), 0700);
  path += "/ein";
  ::mkdir(path.c_str(), 0700);
  struct stat status {};
  const bool is_ours = ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
                       status.st_uid == ::geteuid() && (status.st_mode & 022) == 0;
  return is_ours ? path : "";
}

bool load(const std::string& path, CpuLimits& limits) {
  try {
    const io::InputFile file("measured_cpu", path);
    if (file.size() > 4096) return false;
    return host::read_limits(file.read(), limits);
  } catch (const Error&) {
    return false;
  }
}

void save(const std::string& path, const CpuLimits& limits) {
  try {
    io::replace_file("measured_cpu", path, host::limits_text(limits));
  } catch (const Error&) {
    // The measurement holds all the same; the next process makes its own.
  }
}

}  // namespace

CpuLimits measure_cpu() {
  CpuLimits limits;
  limits.model = processor_model();
  limits.threads = num_threads();
  limits.f32 = measure_flops<float>(limits.threads);
  limits.f64 = measure_flops<double>(limits.threads);
  limits.bf16 = measure_flops<bf16>(limits.threads);
  measure_bandwidth(limits);
  return limits;
}

Hardware host::measured_cpu() { return measured_cpu(measure_cpu); }

Hardware host::measured_cpu(CpuLimits (*measure)()) {
  CpuLimits limits;
  limits.model = processor_model();
  limits.threads = num_threads();
  const std::string directory = private_directory();
  const std::string name =
      "/cpu-" + io::hex(io::xxh64(key_of(limits.model, limits.threads))) + ".txt";
  if (directory.empty() || !load(directory + name, limits)) {
    CpuLimits found = measure();
    found.model = limits.model;
    found.threads = limits.threads;
    limits = found;
    if (!directory.empty()) save(directory + name, limits);
  }

  const std::string threads =
      std::to_string(limits.threads) + (limits.threads == 1 ? " thread" : " threads");
  Hardware cpu{"cpu", limits.model + ", " + threads};
  for (DType dtype : {DType::f32, DType::f16, DType::f8e4m3, DType::f8e5m2}) {
    cpu.peaks.push_back({dtype, TensorCores::no, limits.f32});
  }
  cpu.peaks.push_back({DType::bf16, TensorCores::no, limits.bf16});
  cpu.peaks.push_back({DType::f64, TensorCores::no, limits.f64});
  cpu.bandwidth = std::max(limits.read, limits.copy);
  cpu.memory = physical_memory();
  cpu.source = "measured on this machine";
  return cpu;
}

}  // namespace ein
