#include "harness.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <ein/parallel.hpp>

namespace bench {
namespace {

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Seconds per call of f. What one thread does is timed by its own clock, which stops while the
/// scheduler runs something else there; what several do, by the wall's.
template <class F>
double time(F&& f, int calls) {
  const clockid_t clock = ein::num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double begin = seconds_of(clock);
  for (int i = 0; i < calls; ++i) f();
  return (seconds_of(clock) - begin) / calls;
}

/// How many calls take long enough for the clock not to matter. Where others want the processor
/// too, the scheduler cuts in every few milliseconds, so most samples ought to be shorter.
template <class F>
int calls_per_sample(F&& f) {
  constexpr double sample_seconds = 1e-3;
  int calls = 1;
  for (;;) {
    const double seconds = time(f, calls) * calls;
    if (seconds >= sample_seconds || calls >= 1 << 24) return calls;
    calls = seconds < sample_seconds / 16 ? 8 * calls : 2 * calls;
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool agree(const ein::Tensor& got, const ein::Tensor& expected, double tolerance) {
  if (got.shape() != expected.shape()) return false;
  const auto a = got.to_vector<double>(), b = expected.to_vector<double>();
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return false;
    largest = std::max(largest, std::abs(b[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  return difference <= tolerance * largest;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

std::string target_text(const Target& target) {
  switch (target.kind) {
    case Target::Kind::none:
      return "";
    case Target::Kind::ratio_at_least:
      return ">= " + number(target.value);
    case Target::Kind::nanoseconds_at_most:
      return "<= " + number(target.value) + " ns";
  }
  return "";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

constexpr const char* header = "%-46s %7s %9s %9s %-8s %6s  %-10s %s\n";

}  // namespace

std::vector<int> one_and_all() {
  static const int all = ein::num_threads();
  if (all == 1) return {1};
  return {1, all};
}

void Bench::section(const std::string& title) {
  section_ = title;
  section_is_printed_ = false;
}

void Bench::run(const Case& c, const std::vector<int>& threads) {
  if (c.title.find(options_.filter) == std::string::npos) return;
  const int before = ein::num_threads();
  for (int n : threads) measure(c, n);
  ein::set_num_threads(before);
}

void Bench::measure(const Case& c, int threads) {
  ein::set_num_threads(threads);
  const bool right = !c.expected || agree(c.ours(), c.expected(), c.tolerance);
  const int our_calls = calls_per_sample(c.ours);
  const int their_calls = c.beside ? calls_per_sample(c.beside) : 0;
  std::vector<double> ours, theirs, ratios;
  for (int round = 0; round < options_.rounds; ++round) {
    // Whoever goes first in one round goes second in the next.
    if (c.beside && round % 2 == 0) theirs.push_back(time(c.beside, their_calls));
    ours.push_back(time(c.ours, our_calls));
    if (c.beside && round % 2 == 1) theirs.push_back(time(c.beside, their_calls));
    if (c.beside) ratios.push_back(theirs.back() / ours.back());
  }
  const auto speed = [&](double seconds) {
    if (c.unit == "ns") return seconds * 1e9;
    return c.unit == "us/token" ? seconds * 1e6 / c.work : c.work / seconds * 1e-9;
  };
  Row row{section_, c.title, c.peer,   c.unit, threads, speed(median(ours)),
          0,        0,       c.target, right,  true};
  if (c.beside) {
    row.beside = speed(median(theirs));
    row.ratio = median(ratios);
  }
  if (c.target.kind == Target::Kind::ratio_at_least) row.met = row.ratio >= c.target.value;
  if (c.target.kind == Target::Kind::nanoseconds_at_most) row.met = row.ours <= c.target.value;
  if (!options_.json) {
    if (rows_.empty()) {
      std::printf(header, "", "threads", "ein", "beside", "unit", "ratio", "target", "");
    }
    if (!section_is_printed_) std::printf("\n%s\n", section_.c_str());
    section_is_printed_ = true;
    print(row);
  }
  rows_.push_back(std::move(row));
}

void Bench::print(const Row& row) const {
  const bool has_peer = !row.peer.empty();
  std::string verdict = row.target.kind == Target::Kind::none ? "" : row.met ? "met" : "missed";
  if (!row.right) verdict = "WRONG RESULT";
  std::printf(
      header, row.title.c_str(), std::to_string(row.threads).c_str(), number(row.ours).c_str(),
      has_peer ? number(row.beside).c_str() : "", row.unit.c_str(),
      has_peer ? number(row.ratio).c_str() : "", target_text(row.target).c_str(),
      (verdict + (has_peer ? (verdict.empty() ? "beside " : ", beside ") + row.peer : "")).c_str());
  std::fflush(stdout);
}

bool Bench::finish() {
  int missed = 0, wrong = 0;
  for (const Row& row : rows_) {
    missed += !row.met;
    wrong += !row.right;
  }
  if (options_.json) {
    std::printf("[\n");
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      std::printf(
          "  {\"section\": %s, \"title\": %s, \"peer\": %s, \"threads\": %d, \"unit\": %s, "
          "\"ein\": %.6g, "
          "\"beside\": %.6g, \"ratio\": %.4g, \"target\": %s, \"met\": %s, \"right\": %s}%s\n",
          quoted(row.section).c_str(), quoted(row.title).c_str(), quoted(row.peer).c_str(),
          row.threads, quoted(row.unit).c_str(), row.ours, row.beside, row.ratio,
          quoted(target_text(row.target)).c_str(), row.met ? "true" : "false",
          row.right ? "true" : "false", i + 1 < rows_.size() ? "," : "");
    }
    std::printf("]\n");
  } else {
    std::printf("\n%zu rows, %d missed, %d wrong\n", rows_.size(), missed, wrong);
  }
  return wrong == 0;
}

}  // namespace bench
