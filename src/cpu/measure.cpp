// The micro-benchmark of this machine's processors, and the file that remembers what it found.
#include <time.h>

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
#include <optional>
#include <utility>
#include <vector>

#include <ein/error.hpp>
#include <ein/hardware.hpp>

#include "cpu/level.hpp"
#include "cpu/measure.hpp"
#include "io/number.hpp"
#include "io/private_directory.hpp"
#include "io/xxh64.hpp"
#include "machine/parallel.hpp"
#include "machine/system.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

/// Changes when the benchmark does, so that older files are measured anew.
constexpr int measurement_version = 3;

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

/// FLOP/s of all threads: of several runs the best, of each run the slowest thread, by the time
/// that it had a processor. So another program's share of the machine does not count.
double measure_flops(double (*multiply_add)(std::int64_t), int threads) {
  std::vector<double> seconds(static_cast<std::size_t>(threads)), flops(seconds.size());
  const auto run = [&](std::int64_t steps) {
    host::parallel_for(threads, [&](std::int64_t part) {
      const double begin = seconds_now(CLOCK_THREAD_CPUTIME_ID);
      flops[static_cast<std::size_t>(part)] = multiply_add(steps);
      seconds[static_cast<std::size_t>(part)] = seconds_now(CLOCK_THREAD_CPUTIME_ID) - begin;
    });
    return *std::max_element(seconds.begin(), seconds.end());
  };
  // Long enough for the clock, and on an emulated processor, a thousand times slower, not longer.
  constexpr double least_seconds = 5e-4;
  std::int64_t steps = 500;
  while (run(steps) < least_seconds && steps < 500'000) steps *= 10;
  double best = INFINITY;
  for (int repeat = 0; repeat < 25; ++repeat) best = std::min(best, run(steps));
  return flops[0] * threads / std::max(best, 1e-9);
}

/// Twice the largest cache, for each of two arrays, but little of the memory.
std::size_t array_bytes() {
  const double cache = static_cast<double>(system::cache_bytes(3));
  const double most = std::max(system::physical_memory() / 16, 0x1p24);
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
  if (array) system::prefer_large_pages(array.get(), bytes);
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
  const host::Level& level = host::level();
  const double read_seconds = best_seconds(count, [&](std::int64_t part) {
    keep(level.checksum(from.get() + offset(part), part_bytes));
  });
  const double copy_seconds = best_seconds(count, [&](std::int64_t part) {
    std::memcpy(to.get() + offset(part), from.get() + offset(part), part_bytes);
    keep(to[offset(part)]);
  });
  limits.read = static_cast<double>(bytes) / read_seconds;
  limits.copy = 2 * static_cast<double>(bytes) / copy_seconds;
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
         "\nthreads " + std::to_string(threads) + "\nvectors " +
         std::to_string(host::level().vector_bytes) +
         (host::level().has_multiply_add ? " fma" : "") +
         (host::bf16_products().in_pairs ? " bf16" : "") + "\n";
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
  const std::size_t end = text.find('\n');
  if (end == text.npos) return false;
  const auto number = io::number_of<double>(text.substr(name.size(), end - name.size()));
  if (!number || *number <= 0) return false;
  value = *number;
  text.remove_prefix(end + 1);
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

/// The user's own directory for what ein keeps, made if need be; null if there can be none.
std::unique_ptr<const io::PrivateDirectory> private_directory() {
  const std::string cache = io::user_cache();
  if (cache.empty()) return nullptr;
  try {
    return std::make_unique<const io::PrivateDirectory>("measured_cpu", cache + "/ein",
                                                        io::PrivateDirectory::Others::enter);
  } catch (const Error&) {
    return nullptr;
  }
}

bool load(const io::PrivateDirectory& directory, const std::string& name, CpuLimits& limits) {
  const std::optional<std::string> text = directory.read(name, 4096);
  return text && host::read_limits(*text, limits);
}

void save(const io::PrivateDirectory& directory, const std::string& name, const CpuLimits& limits) {
  try {
    directory.replace(name, host::limits_text(limits));
  } catch (const Error&) {
    // The measurement holds all the same; the next process makes its own.
  }
}

}  // namespace

CpuLimits measure_cpu() {
  CpuLimits limits;
  limits.model = system::processor_model();
  limits.threads = num_threads();
  const host::Level& level = host::level();
  limits.f32 = measure_flops(level.multiply_add_f32, limits.threads);
  limits.f64 = measure_flops(level.multiply_add_f64, limits.threads);
  // Without instructions for bf16 it is computed in f32.
  const auto* const bf16 = host::bf16_products().in_pairs;
  limits.bf16 = bf16 ? measure_flops(bf16->multiply_add, limits.threads) : limits.f32;
  measure_bandwidth(limits);
  return limits;
}

Hardware host::measured_cpu() { return measured_cpu(measure_cpu); }

Hardware host::measured_cpu(CpuLimits (*measure)()) {
  CpuLimits limits;
  limits.model = system::processor_model();
  limits.threads = num_threads();
  const auto directory = private_directory();
  const std::string name =
      "cpu-" + io::hex(io::xxh64(key_of(limits.model, limits.threads))) + ".txt";
  if (!directory || !load(*directory, name, limits)) {
    CpuLimits found = measure();
    found.model = limits.model;
    found.threads = limits.threads;
    limits = found;
    if (directory) save(*directory, name, limits);
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
  cpu.memory = system::physical_memory();
  cpu.source = "measured on this machine";
  return cpu;
}

}  // namespace ein
