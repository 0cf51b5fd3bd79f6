// Any bytes as the kept limits of a processor: refused, unless they are what is written for them.
#include <algorithm>
#include <cmath>

#include "cpu/measure.hpp"
#include "fuzz/fuzz.hpp"

using namespace ein;
using namespace ein::fuzz;
using host::limits_text, host::read_limits;

namespace {

void check_text(const std::string& text) {
  CpuLimits limits{.model = "a processor", .threads = 2};
  if (read_limits(text, limits))
    require(limits_text(limits) == text, "limits that would be written in another way");
}

/// The bytes after the lines of this machine, with the right checksum (FNV-1a).
std::string with_sum(std::string_view rates) {
  const std::string written = limits_text({.model = "a processor", .threads = 2});
  std::string text = written.substr(0, written.find("\nf32 ") + 1);
  text += rates;
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return text + "sum " + std::to_string(sum) + "\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_text(std::string(bytes));
  check_text(with_sum(bytes));
  // The bytes as numbers.
  double rates[5] = {1, 2, 3, 4, 5};
  std::memcpy(rates, data, std::min(size, sizeof rates));
  CpuLimits given{.model = "a processor", .threads = 2};
  given.f32 = rates[0], given.f64 = rates[1], given.bf16 = rates[2], given.read = rates[3],
  given.copy = rates[4];
  const std::string written = limits_text(given);
  CpuLimits again{.model = given.model, .threads = given.threads};
  const bool is_possible =
      std::ranges::all_of(rates, [](double rate) { return rate > 0 && std::isfinite(rate); });
  require(read_limits(written, again) == is_possible,
          "possible rates refused, or impossible ones accepted");
  if (is_possible) {
    require(again.f32 == given.f32 && again.f64 == given.f64 && again.bf16 == given.bf16 &&
                again.read == given.read && again.copy == given.copy,
            "other rates after a round trip");
  }
  // A changed byte is found.
  std::string changed = written;
  changed[size % changed.size()] ^= static_cast<char>(1 + (size > 0 ? data[0] : 0) % 127);
  require(!read_limits(changed, again), "a changed byte");
  return 0;
}
