// The call that the command line describes.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "ein/grammar/parse.hpp"
#include "graph/call.hpp"
#include "machine/printable.hpp"

namespace CLI {
class App;
}

namespace ein::command {

/// A mistake in the words of the command line; exit code 2, as for one in the pattern. It is one
/// line, whatever these words have in them.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& text) : std::runtime_error(printable_line(text)) {}
};

/// The words of a call as they were written.
struct CallWords {
  std::string op;
  std::string pattern;
  std::vector<std::string> axes;
  std::string by;
  std::vector<std::string> packed;
  std::string eps, k, as;
  std::vector<std::string> numbers, reals;
  bool descending = false;
  std::vector<std::string> shapes;
  std::vector<std::string> dtypes;
};

/// Adds OP, PATTERN and the options that say more of a call: --axis, --by, --packed, --eps, -k,
/// --descending, --number, --real and --as.
void add_call(CLI::App& app, CallWords& words);
/// Adds --shape and --dtype.
void add_operands(CLI::App& app, CallWords& words);

/// The operation of that name, or a UsageError.
Operation operation_of(const std::string& word);
/// The dtype of that name; a UsageError that lists those that `may_be`, where there is none.
DType dtype_of_word(const char* option, const std::string& word,
                    const std::string& may_be = list_dtypes());
/// The axes that --mesh names: "data=2,model=2".
std::vector<MeshAxis> mesh_axes(const std::string& text);
/// The first dtype that --dtype names, f32 without; a UsageError for a word that is none.
DType dtype_of(const CallWords& words);
/// The operands that --shape and --dtype describe. One dtype is that of all operands but those that
/// are positions, which are i64 then. A UsageError for a word that is no shape or dtype, and for a
/// number of dtypes that does not fit; an Error for a shape that no tensor can have.
std::vector<OperandType> operands_of(const CallWords& words);

/// A call, its pattern read and checked.
class Call {
 public:
  /// A UsageError for words that make no call of `operand_count` operands, an Error for a mistake
  /// in the pattern. `words` must outlive the call.
  Call(const CallWords& words, std::size_t operand_count);
  /// For as many operands as the pattern has.
  explicit Call(const CallWords& words);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Operation op() const { return call_.op; }
  const PatternCall& get() const { return call_; }
  /// How many tensors it makes; none for parse_shape.
  std::size_t result_count() const;

 private:
  void read(const CallWords& words);
  void check(std::size_t operand_count) const;

  grammar::Reading reading_;
  std::vector<AxisSize> sizes_;
  std::vector<Shape> packed_;
  std::vector<Size> numbers_;
  std::vector<double> reals_;
  PatternCall call_;
};

/// "batch=2 h=5", the result of parse_shape.
std::string sizes_line(const grammar::Pattern& pattern, const Shape& shape);
/// "packed: (), (7,)", what pack joined.
std::string packed_line(std::span<const Shape> packed);

}  // namespace ein::command
