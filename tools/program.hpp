// Several calls as one program, from a file; and what a command is asked to compute.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ein/graph.hpp>

#include "call.hpp"

namespace ein::command {

/// The operation that the command line calls a program.
inline constexpr const char* program_word = "program";

/// Calls that read each other's results:
///
///     # attention
///     inputs q k v
///     s = einsum 'b h q d, b h k d -> b h q k' q k
///     p = softmax 'b h q [k]' s
///     y = einsum 'b h q k, b h k d -> b h q d' p v
///     outputs y
///
/// A line is RESULTS = OP 'PATTERN' OPERANDS, with the options of a call. Each name has one value.
class ProgramFile {
 public:
  /// An Error or a UsageError that names the file and the line.
  explicit ProgramFile(const std::string& path);

  std::size_t input_count() const { return inputs_; }
  std::size_t result_count() const { return outputs_.size(); }
  /// The graph of all calls: an input for each operand, an output for each result.
  Graph graph(std::span<const OperandType> operands) const;

 private:
  struct Line {
    std::size_t number;
    CallWords words;
    std::vector<std::string> operand_names;
    std::vector<std::size_t> operands, results;  // numbers of values
    std::unique_ptr<Call> call;
  };

  void read(std::size_t number, const std::vector<std::string>& words);
  void read_call(std::size_t number, const std::vector<std::string>& words);
  std::size_t new_value(const std::string& name);
  std::size_t value(const std::string& name) const;
  /// f(), whose errors get the file and the line before them.
  template <class F>
  auto at_line(std::size_t number, F&& f) const;

  std::string path_;
  std::vector<std::string> names_;  // of values
  bool has_inputs_ = false;
  std::size_t inputs_ = 0;
  std::deque<Line> lines_;
  std::vector<std::size_t> outputs_;
};

/// What the words ask for: a call; or, where the operation is `program`, the file that stands where
/// the pattern would.
class Computation {
 public:
  /// As Call and ProgramFile. `words` must outlive it.
  Computation(const CallWords& words, std::size_t operand_count);
  /// For as many operands as the pattern or the program has.
  explicit Computation(const CallWords& words);

  /// The call; none of a program.
  const Call* call() const { return call_ ? &*call_ : nullptr; }
  /// Whether it is parse_shape, which has no graph.
  bool computes_nothing() const { return call_ && call_->op() == Operation::parse_shape; }
  std::size_t result_count() const {
    return call_ ? call_->result_count() : program_->result_count();
  }
  Graph graph(std::span<const OperandType> operands) const;

 private:
  std::optional<Call> call_;
  std::optional<ProgramFile> program_;
};

}  // namespace ein::command
