// log.jsonl and loss.svg of a training run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ein/train.hpp>

namespace ein::training {

/// In the run's directory.
inline constexpr const char *log_name = "log.jsonl", *picture_name = "loss.svg";

/// Losses by step.
struct Losses {
  struct Point {
    std::int64_t step;
    double loss;
  };
  std::vector<Point> steps, train, validation;
};

/// Takes the losses of a run up to the step at which it goes on from its log.jsonl, and returns the
/// lines that tell them. `text` may be any bytes.
std::string read_log(const std::string& text, std::int64_t first_step, Losses& losses);
/// An SVG of them.
std::string picture(const Losses& losses);

class Log {
 public:
  /// Keeps the lines of a run that is resumed, up to the step at which it goes on. An Error of kind
  /// `file`.
  Log(const std::string& directory, std::int64_t first_step);

  void stepped(std::int64_t step, const TrainProgress& progress);
  /// Also draws the losses so far.
  void evaluated(const TrainProgress& progress);

 private:
  void write(const std::string& line);

  std::string directory_;
  Losses losses_;
};

}  // namespace ein::training
