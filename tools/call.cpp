#include "call.hpp"

#include <charconv>
#include <optional>

#include "words.hpp"

namespace ein::command {
namespace {

constexpr Operation operations[] = {Operation::einsum,     Operation::reduce, Operation::rearrange,
                                    Operation::repeat,     Operation::pack,   Operation::unpack,
                                    Operation::parse_shape};
constexpr const char* reduction_names =
    "sum, mean, max, min, prod, any, all, logsumexp, var or std";

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

Operation operation_of(const std::string& word) {
  for (Operation op : operations) {
    if (name(op) == word) return op;
  }
  throw UsageError("unknown operation " + in_quotes(word) +
                   "; it may be einsum, reduce, rearrange, repeat, pack, unpack or parse_shape");
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? std::string_view()
                            : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// The size that `text` says, at least `lowest`; `where` is the word it is part of.
std::int64_t size_of_text(std::string_view text, std::int64_t lowest, const std::string& where) {
  const std::string_view digits = without_blanks(text);
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error == std::errc::result_out_of_range)
    throw UsageError(where + ": " + in_quotes(digits) + " exceeds 63 bits");
  if (error != std::errc() || end != digits.data() + digits.size()) {
    throw UsageError(where + ": " + in_quotes(digits) + " is not a size");
  }
  if (size < lowest) {
    throw UsageError(where + ": the size " + std::string(digits) + " is less than " +
                     std::to_string(lowest));
  }
  return size;
}

/// "2,3,64"; the empty word is the shape of a scalar.
Shape shape_of(const std::string& option, const std::string& word, std::int64_t lowest) {
  Shape shape;
  std::string_view rest = word;
  if (without_blanks(rest).empty()) return shape;
  for (;;) {
    const std::size_t comma = rest.find(',');
    shape.push_back(size_of_text(rest.substr(0, comma), lowest, option + " " + in_quotes(word)));
    if (comma == rest.npos) return shape;
    rest.remove_prefix(comma + 1);
  }
}

AxisSize axis_size_of(const std::string& word) {
  const std::string where = "--axis " + in_quotes(word);
  const std::size_t equals = word.find('=');
  if (equals == word.npos || equals == 0)
    throw UsageError(where + ": an axis and its size are written NAME=SIZE");
  const auto name = std::string_view(word).substr(0, equals);
  return {name, size_of_text(std::string_view(word).substr(equals + 1), 0, where)};
}

}  // namespace

void add_call(CLI::App& app, CallWords& words) {
  add_word(app, "OP", words.op, "einsum, reduce, rearrange, repeat, pack, unpack or parse_shape")
      ->required();
  add_word(app, "PATTERN", words.pattern, "such as 'b s (h d) -> b h s d'")->required();
  add_words(app, "--axis", words.axes,
            "the size of an axis that the shapes do not tell, such as h=8")
      ->type_name("NAME=SIZE");
  add_word(app, "--by", words.by, std::string("for reduce: ") + reduction_names)
      ->type_name("REDUCTION");
  add_words(app, "--packed", words.packed,
            "for unpack: the shape of a piece under '*'; one size may be -1")
      ->type_name("SHAPE");
}

void add_operands(CLI::App& app, CallWords& words) {
  add_words(app, "--shape", words.shapes,
            "the shape of an operand, such as 2,3,64; '' for a scalar")
      ->type_name("SHAPE");
  add_word(app, "--dtype", words.dtype, "their dtype, f32 without: " + list_dtypes())
      ->type_name("DTYPE");
}

std::vector<OperandType> operands_of(const CallWords& words) {
  const std::optional<DType> dtype = parse_dtype(words.dtype);
  if (!dtype)
    throw UsageError("--dtype: unknown dtype " + in_quotes(words.dtype) + "; it may be " +
                     list_dtypes());
  std::vector<OperandType> operands;
  for (const std::string& word : words.shapes) {
    operands.push_back({shape_of("--shape", word, 0), *dtype});
    checked_numel(operands.back().shape, static_cast<std::int64_t>(size_of(*dtype)));
  }
  return operands;
}

Call::Call(const CallWords& words, std::size_t operand_count) {
  read(words);
  const bool takes_many = op() == Operation::einsum || op() == Operation::pack;
  const bool takes_one = op() == Operation::unpack || op() == Operation::parse_shape;
  if (takes_one && operand_count != 1) {
    throw UsageError(std::string(name(op())) + " takes one operand, there are " +
                     std::to_string(operand_count));
  }
  call_.stacked = !takes_many && operand_count > 1;
  check(call_.stacked ? 1 : operand_count);
  if (op() == Operation::unpack && packed_.empty()) {
    throw UsageError("unpack needs --packed, once for each piece");
  }
}

Call::Call(const CallWords& words) {
  read(words);
  check(call_.pattern.inputs().size());
}

void Call::read(const CallWords& words) {
  call_.op = operation_of(words.op);
  if (op() == Operation::reduce) {
    if (words.by.empty())
      throw UsageError(std::string("reduce needs --by; it may be ") + reduction_names);
    const std::optional<Reduction> reduction = parse_reduction(words.by);
    if (!reduction) {
      throw UsageError("--by: unknown reduction " + in_quotes(words.by) + "; it may be " +
                       reduction_names);
    }
    call_.reduction = *reduction;
  } else if (!words.by.empty()) {
    throw UsageError("--by is for reduce, not for " + words.op);
  }
  if (op() != Operation::unpack && !words.packed.empty()) {
    throw UsageError("--packed is for unpack, not for " + words.op);
  }
  const bool takes_sizes =
      op() != Operation::pack && op() != Operation::unpack && op() != Operation::parse_shape;
  if (!takes_sizes && !words.axes.empty()) throw UsageError("--axis is not for " + words.op);
  for (const std::string& word : words.axes) sizes_.push_back(axis_size_of(word));
  for (const std::string& word : words.packed) packed_.push_back(shape_of("--packed", word, -1));
  call_.sizes = sizes_;
  call_.packed_shapes = packed_;

  reading_ = grammar::parse_pattern(words.pattern);
  call_.pattern = reading_.buffer.pattern(words.pattern);
  if (reading_.mistake) fail(op(), call_.pattern, reading_.mistake, {});
}

void Call::check(std::size_t operand_count) const {
  std::vector<std::string_view> names;
  for (const AxisSize& size : sizes_) names.push_back(size.name);
  if (const auto mistake = grammar::check_pattern(op(), call_.pattern, operand_count, names)) {
    fail(op(), call_.pattern, mistake, sizes_);
  }
}

std::size_t Call::result_count() const {
  if (op() == Operation::parse_shape) return 0;
  return op() == Operation::unpack ? packed_.size() : 1;
}

std::string sizes_line(const grammar::Pattern& pattern, const Shape& shape) {
  std::string line;
  for (const auto& [axis, size] : solve_shape(pattern, shape)) {
    line += (line.empty() ? "" : " ") + axis + "=" + std::to_string(size);
  }
  return line + "\n";
}

std::string packed_line(std::span<const Shape> packed) {
  std::string line;
  for (const Shape& shape : packed) line += (line.empty() ? "packed: " : ", ") + shape.to_string();
  return line + "\n";
}

}  // namespace ein::command
