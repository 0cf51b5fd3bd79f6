// Any bytes as the log.jsonl of a run that goes on: lines that are read again the same, with steps
// of that run, and a picture that has numbers for all of its places.
#include "train/log.hpp"

#include "fuzz/fuzz.hpp"

using namespace ein;
using namespace ein::fuzz;

namespace {

void check_steps(const std::vector<training::Losses::Point>& points, std::int64_t last) {
  for (const training::Losses::Point& point : points)
    require(point.step >= 0 && point.step <= last, "a step of another run");
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
  const std::string svg = training::picture(losses);
  require(training::picture(again) == svg, "another picture after a round trip");
  require(svg.find("nan") == svg.npos && svg.find("inf") == svg.npos, "a place that is no number");
  return 0;
}
