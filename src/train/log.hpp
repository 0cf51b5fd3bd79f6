// log.jsonl and loss.svg of a training run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ein/train.hpp>

namespace ein::training {

class Log {
 public:
  /// Keeps the lines of a run that is resumed, up to the step at which it goes on. An Error of kind
  /// `file`.
  Log(const std::string& directory, std::int64_t first_step);

  void stepped(std::int64_t step, const TrainProgress& progress);
  /// Also draws the losses so far.
  void evaluated(const TrainProgress& progress);

 private:
  struct Point {
    std::int64_t step;
    double loss;
  };
  void write(const std::string& line);
  std::string picture() const;

  std::string directory_;
  std::vector<Point> steps_, train_, validation_;
};

}  // namespace ein::training
