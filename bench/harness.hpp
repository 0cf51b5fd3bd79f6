// A small harness of our own: a speed here is a ratio of two programs run in turns, which Google
// Benchmark cannot express, and other work on the machine then slows both alike.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ein/tensor.hpp>

namespace bench {

struct Options {
  std::string filter;  // only rows whose title contains it
  int rounds = 41;
  bool json = false;
};

/// What a row asserts; none for a row that informs.
struct Target {
  enum class Kind { none, ratio_at_least, nanoseconds_at_most } kind = Kind::none;
  double value = 0;
};
inline Target at_least(double ratio) { return {Target::Kind::ratio_at_least, ratio}; }
inline Target at_most_ns(double nanoseconds) {
  return {Target::Kind::nanoseconds_at_most, nanoseconds};
}

/// One comparison: a call of ein's and something to hold it against that does the same work.
struct Case {
  std::string title;
  std::string peer;  // what `beside` is; empty if there is none
  std::function<ein::Tensor()> ours;
  std::function<void()> beside;
  /// Of one call: flop for "GFLOP/s", bytes for "GB/s", tokens for "us/token"; unused for "ns".
  double work = 0;
  std::string unit = "GFLOP/s";
  Target target{};
  /// The right answer, compared with that of `ours` before anything is timed.
  std::function<ein::Tensor()> expected;
  double tolerance = 1e-4;  // relative to the largest element of the answer
};

class Bench {
 public:
  explicit Bench(Options options) : options_(std::move(options)) {}

  /// Begins a group of rows; printed above them.
  void section(const std::string& title);
  /// Measures on each number of threads.
  void run(const Case& c, const std::vector<int>& threads);
  /// Prints the table's end or the JSON; false if an answer was wrong.
  bool finish();

 private:
  struct Row {
    std::string section, title, peer, unit;
    int threads;
    double ours, beside, ratio;  // speeds in `unit`; medians over the rounds
    Target target;
    bool right, met;
  };
  void measure(const Case& c, int threads);
  void print(const Row& row) const;

  Options options_;
  std::string section_;
  bool section_is_printed_ = false;
  std::vector<Row> rows_;
};

/// 1 and all of the machine's threads.
std::vector<int> one_and_all();

// One function per file of benchmarks.
void contractions(Bench& bench);
void memory(Bench& bench);
void calls(Bench& bench);
void lengths(Bench& bench);
void vmaps(Bench& bench);

}  // namespace bench
