// Any bytes as the log.jsonl of a run that goes on: lines that are read again the same, with steps
// of that run, and a picture that has numbers for all of its places.
#include "train/log.hpp"

#include <algorithm>
#include <bit>

#include "fuzz/fuzz.hpp"

using namespace ein;
using namespace ein::fuzz;

namespace {

void check_steps(const std::vector<training::Losses::Point>& points, std::int64_t last) {
  for (const training::Losses::Point& point : points)
    require(point.step >= 0 && point.step <= last, "a step of another run");
}

/// A loss may be no number.
bool is_same(const std::vector<training::Losses::Point>& a,
             const std::vector<training::Losses::Point>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.step == y.step &&
           std::bit_cast<std::uint64_t>(x.loss) == std::bit_cast<std::uint64_t>(y.loss);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::int64_t first = size % 2 == 0 ? 1000 : INT64_MAX;
  training::Losses losses, again;
  const std::string kept = training::read_log(text, first, losses);
  check_steps(losses.steps, first);
  check_steps(losses.train, first);
  check_steps(losses.validation, first);
  require(training::read_log(kept, first, again) == kept, "other lines after a round trip");
  require(is_same(losses.steps, again.steps) && is_same(losses.train, again.train) &&
              is_same(losses.validation, again.validation),
          "other losses after a round trip");
  const std::string svg = training::picture(losses);
  require(svg.find("nan") == svg.npos && svg.find("inf") == svg.npos, "a place that is no number");
  return 0;
}
