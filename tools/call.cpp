#include "call.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>

#include "graph/diagnostic.hpp"
#include "io/number.hpp"
#include "program.hpp"
#include "tensor/rank.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* reduction_names =
    "sum, mean, max, min, prod, any, all, logsumexp, var, std, sample_var, sample_std, norm, "
    "nansum, "
    "nanmean, nanmax, nanmin, nanprod, nanvar or nanstd";

/// The operations that the command has: not those of a function, which a word does not say, nor
/// multinomial, which draws random numbers.
std::vector<Operation> operations() {
  std::vector<Operation> all;
  for (int i = 0; i < operation_count; ++i) {
    const auto op = static_cast<Operation>(i);
    if (stands_alone(op) && op != Operation::multinomial) all.push_back(op);
  }
  return all;
}

std::string operation_names() {
  std::string names;
  const std::vector<Operation> all = operations();
  for (const Operation& op : all) {
    names += &op == &all.front() ? "" : &op == &all.back() ? " or " : ", ";
    names += name(op);
  }
  return names;
}

/// An option that some operations read, as it was written; empty where it was not given.
struct Option {
  const char* name;
  const std::string& word;
};

/// A UsageError for an option that this operation does not read.
void refuse(const Option& option, Operation op, unsigned said) {
  if (option.word.empty() || (info(op).reads & said) != 0) return;
  std::vector<std::string> readers;
  for (const Operation reader : operations()) {
    if ((info(reader).reads & said) != 0) readers.emplace_back(name(reader));
  }
  std::string list;
  for (const std::string& reader : readers)
    list += (list.empty() ? "" : &reader == &readers.back() ? " and " : ", ") + reader;
  throw UsageError(std::string(option.name) + " is for " + list + ", not for " +
                   std::string(name(op)));
}

/// A UsageError for an option that this operation wants another number of times. Where it wants one
/// for each axis, the graph knows how many.
void check_counts(Operation op, std::size_t numbers, std::size_t reals) {
  const auto complain = [&](const char* option, std::size_t given, const std::string& wanted) {
    throw UsageError(std::string(name(op)) + " needs " + option + " " + wanted + "; it is given " +
                     std::to_string(given) + (given == 1 ? " time" : " times"));
  };
  switch (op) {
    case Operation::pad:
      if (numbers % 2 != 0)
        complain("--number", numbers, "as often for how many after as for how many before");
      break;
    case Operation::tril:
    case Operation::triu:
    case Operation::diagonal:
    case Operation::from_diagonal:
      if (numbers > 1) complain("--number", numbers, "at most once, which diagonal");
      break;
    case Operation::quantile:
      if (reals == 0) complain("--real", reals, "at least once, which quantile");
      break;
    case Operation::histogram:
      if (numbers != 1) complain("--number", numbers, "once, how many bins");
      if (reals != 2) complain("--real", reals, "twice, where the bins begin and where they end");
      break;
    default:
      break;
  }
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
    throw UsageError(where + ": " + ein::quoted(digits) + " exceeds 63 bits");
  if (error != std::errc() || end != digits.data() + digits.size()) {
    throw UsageError(where + ": " + ein::quoted(digits) + " is not a size");
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
  require_possible_rank(1 + static_cast<std::size_t>(std::count(word.begin(), word.end(), ',')));
  const std::string where = option + " " + ein::quoted(word);
  for (;;) {
    const std::size_t comma = rest.find(',');
    shape.push_back(size_of_text(rest.substr(0, comma), lowest, where));
    if (comma == rest.npos) return shape;
    rest.remove_prefix(comma + 1);
  }
}

AxisSize axis_size_of(const std::string& word) {
  const std::string where = "--axis " + ein::quoted(word);
  const std::size_t equals = word.find('=');
  if (equals == word.npos || equals == 0)
    throw UsageError(where + ": an axis and its size are written NAME=SIZE");
  const auto name = std::string_view(word).substr(0, equals);
  return {name, size_of_text(std::string_view(word).substr(equals + 1), 0, where)};
}

/// `--number stride=2`, a number of the pattern's braces.
bool is_named_number(const std::string& word) { return word.find('=') != word.npos; }
AxisSize named_number_of(const std::string& word) {
  const std::size_t equals = word.find('=');
  const auto value = io::number_of<std::int64_t>(word.substr(equals + 1));
  if (equals == 0 || !value)
    throw UsageError("--number " + ein::quoted(word) + ": a name and its number are NAME=N");
  return {std::string_view(word).substr(0, equals), *value, true};
}

}  // namespace

void add_call(CLI::App& app, CallWords& words) {
  add_word(app, "OP", words.op, operation_names() + "; or " + program_word)->required();
  add_word(app, "PATTERN", words.pattern, "such as 'b s (h d) -> b h s d'; the file of a program")
      ->required();
  add_words(app, "--axis", words.axes,
            "the size of an axis that the shapes do not tell, such as h=8")
      ->type_name("NAME=SIZE");
  add_word(app, "--by", words.by, std::string("for reduce: ") + reduction_names)
      ->type_name("REDUCTION");
  add_words(app, "--packed", words.packed,
            "for unpack: the shape of a piece under '*'; one size may be -1")
      ->type_name("SHAPE");
  add_word(app, "--eps", words.eps,
           "for norms: added to the variance; 1e-5 without, 1e-6 for rms_norm")
      ->type_name("NUMBER");
  add_word(app, "-k", words.k, "for top_k: how many")->type_name("NUMBER");
  add_words(app, "--number", words.numbers,
            "for roll: a shift; for pad: how many before, and as often, how many after; for "
            "triangles and diagonals: which; for histogram: how many bins; of braces, by its name, "
            "such as stride=2")
      ->type_name("[NAME=]NUMBER");
  add_words(app, "--real", words.reals,
            "for quantile: which; for histogram: where the bins begin, and where they end")
      ->type_name("NUMBER");
  app.add_flag("--descending", words.descending, "for sort: the greatest first");
  add_word(app, "--as", words.as, "the dtype of the result, where the operation can have another")
      ->type_name("DTYPE");
}

void add_operands(CLI::App& app, CallWords& words) {
  add_words(app, "--shape", words.shapes,
            "the shape of an operand, such as 2,3,64; '' for a scalar")
      ->type_name("SHAPE");
  add_words(app, "--dtype", words.dtypes,
            "their dtype, f32 without; or once for each: " + list_dtypes())
      ->type_name("DTYPE");
}

DType dtype_of_word(const char* option, const std::string& word, const std::string& may_be) {
  if (const std::optional<DType> dtype = parse_dtype(word)) return *dtype;
  throw UsageError(std::string(option) + ": unknown dtype " + ein::quoted(word) + "; it may be " +
                   may_be);
}

Operation operation_of(const std::string& word) {
  for (const Operation op : operations()) {
    if (name(op) == word) return op;
  }
  throw UsageError("unknown operation " + ein::quoted(word) + "; it may be " + operation_names() +
                   "; or " + program_word + ", of a file");
}

std::vector<MeshAxis> mesh_axes(const std::string& text) {
  std::vector<MeshAxis> axes;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t sign = word.find('=');
    const auto size = sign == word.npos ? std::nullopt : io::number_of<int>(word.substr(sign + 1));
    if (!size || *size < 1)
      throw Error(ErrorKind::value,
                  "--mesh: " + ein::quoted(word) + " is no axis of a mesh, such as data=2");
    axes.push_back({word.substr(0, sign), *size});
  }
  return axes;
}

DType dtype_of(const CallWords& words) {
  return words.dtypes.empty() ? DType::f32 : dtype_of_word("--dtype", words.dtypes.front());
}

std::vector<OperandType> operands_of(const CallWords& words) {
  const DType first = dtype_of(words);
  const std::size_t shapes = words.shapes.size(), dtypes = words.dtypes.size();
  if (dtypes > 1 && shapes > 0 && dtypes != shapes) {
    throw UsageError("--dtype is given " + std::to_string(dtypes) + " times, --shape " +
                     std::to_string(shapes) + (shapes == 1 ? " time" : " times") +
                     "; it is given once for all operands, or once for each");
  }
  const int positions = words.op == program_word ? -1 : info(operation_of(words.op)).positions;
  std::vector<OperandType> operands;
  for (std::size_t k = 0; k < shapes; ++k) {
    const DType dtype = dtypes > 1                     ? dtype_of_word("--dtype", words.dtypes[k])
                        : std::cmp_equal(positions, k) ? DType::i64
                                                       : first;
    operands.push_back({shape_of("--shape", words.shapes[k], 0), dtype});
    checked_numel(operands.back().shape, static_cast<std::int64_t>(size_of(dtype)));
  }
  return operands;
}

Call::Call(const CallWords& words, std::size_t operand_count) {
  read(words);
  const bool takes_one = op() == Operation::unpack || op() == Operation::parse_shape;
  if (takes_one && operand_count != 1) {
    throw UsageError(std::string(name(op())) + " takes one operand, there are " +
                     std::to_string(operand_count));
  }
  call_.stacked = (info(op()).reads & grammar::CallSays::lists) != 0 && operand_count > 1 &&
                  call_.pattern.inputs().size() == 1;
  // What the pattern does not name, the weights of a norm, build_graph() checks.
  check(call_.stacked ? 1 : info(op()).weights > 0 ? info(op()).form.operands : operand_count);
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
      throw UsageError("--by: unknown reduction " + ein::quoted(words.by) + "; it may be " +
                       reduction_names);
    }
    call_.reduction = *reduction;
  }
  using says = grammar::CallSays;
  const auto given = [](bool is_given) { return std::string(is_given ? "given" : ""); };
  refuse({"--by", words.by}, op(), says::by);
  refuse({"--eps", words.eps}, op(), says::eps);
  refuse({"-k", words.k}, op(), says::count);
  std::vector<std::string> numbers;  // but those that braces name
  for (const std::string& word : words.numbers) {
    if (is_named_number(word))
      sizes_.push_back(named_number_of(word));
    else
      numbers.push_back(word);
  }
  refuse({"--number", given(!numbers.empty())}, op(), says::numbers);
  refuse({"--real", given(!words.reals.empty())}, op(), says::reals);
  refuse({"--descending", given(words.descending)}, op(), says::order);
  refuse({"--packed", given(!words.packed.empty())}, op(), says::pieces);
  refuse({"--as", words.as}, op(), says::dtype);
  check_counts(op(), numbers.size(), words.reals.size());
  if ((info(op()).reads & says::sizes) == 0 && !words.axes.empty())
    throw UsageError("--axis is not for " + words.op);
  call_.named.eps = op() == Operation::rms_norm ? 1e-6 : 1e-5;
  if (!words.eps.empty()) {
    const std::optional<double> eps = io::number_of<double>(words.eps);
    if (!eps || !(*eps >= 0))
      throw UsageError("--eps: " + ein::quoted(words.eps) + " is no number of 0 or more");
    call_.named.eps = *eps;
  }
  const auto read_numbers = [](const char* option, const std::vector<std::string>& of, auto& to) {
    for (const std::string& word : of) {
      const auto number =
          io::number_of<std::conditional_t<std::is_same_v<decltype(&to), std::vector<double>*>,
                                           double, std::int64_t>>(word);
      if (!number)
        throw UsageError(std::string(option) + ": " + ein::quoted(word) + " is no number");
      to.push_back(*number);
    }
  };
  read_numbers("--number", numbers, numbers_);
  read_numbers("--real", words.reals, reals_);
  call_.named.numbers = numbers_;
  call_.named.reals = reals_;
  call_.named.keeps_axis = reals_.size() > 1;
  if (op() == Operation::pad) call_.named.k = static_cast<std::int64_t>(numbers_.size() / 2);
  if (op() == Operation::top_k) {
    if (words.k.empty()) throw UsageError("top_k needs -k, the number of elements");
    call_.named.k = size_of_text(words.k, 0, "-k");
  }
  call_.named.descending = words.descending || op() == Operation::top_k;
  if (!words.as.empty()) call_.named.dtype = call_.dtype = dtype_of_word("--as", words.as);
  if (op() == Operation::one_hot && !call_.named.dtype) call_.named.dtype = DType::f32;
  for (const std::string& word : words.axes) sizes_.push_back(axis_size_of(word));
  for (const std::string& word : words.packed) packed_.push_back(shape_of("--packed", word, -1));
  call_.sizes = sizes_;
  call_.packed_shapes = packed_;

  reading_ = grammar::parse_pattern(words.pattern);
  call_.pattern = reading_.buffer.pattern(words.pattern);
  if (reading_.mistake) fail(op(), call_.pattern, reading_.mistake, {});
  require_numbers(op(), reading_.buffer, words.pattern, sizes_);
  call_.pattern = reading_.buffer.pattern(words.pattern);
}

void Call::check(std::size_t operand_count) const {
  if (const auto mistake =
          grammar::check_pattern(op(), call_.pattern, operand_count, axis_names(sizes_))) {
    fail(op(), call_.pattern, mistake, sizes_);
  }
}

std::size_t Call::result_count() const {
  if (op() == Operation::parse_shape) return 0;
  if (op() == Operation::svd) return 3;
  if (op() == Operation::sort || op() == Operation::top_k || op() == Operation::qr ||
      op() == Operation::eigh)
    return 2;
  if (op() == Operation::unpack) return packed_.size();
  return std::max<std::size_t>(call_.pattern.output_count, 1);
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
