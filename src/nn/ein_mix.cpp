#include <ein/nn/ein_mix.hpp>

#include <algorithm>
#include <cmath>

#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/grammar/parse.hpp>
#include <ein/nn/init.hpp>
#include <ein/ops.hpp>
#include "nn/require.hpp"
#include "nn/words.hpp"

namespace ein::nn {
namespace {

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

[[noreturn]] void refuse(ErrorKind kind, std::string_view pattern, const std::string& why) {
  throw Error(kind, "EinMix \"" + std::string(pattern) + "\": " + why);
}

/// A text, read; it must outlive this.
class Reader {
 public:
  explicit Reader(std::string_view text) : reading_(grammar::parse_pattern(text)) {
    if (reading_.mistake) refuse(ErrorKind::syntax, text, "cannot be read as a pattern");
    pattern = reading_.buffer.pattern(text);
  }
  /// The words of one side without its groups.
  Words words(const grammar::Side& side) const {
    Words found;
    for (std::uint32_t i = side.first; i < side.last; ++i) {
      const grammar::Term& term = pattern.terms[i];
      const bool is_word = !term.has_members() && term.kind != grammar::TermKind::constant;
      if (is_word) found.emplace_back(pattern.text_of(term.span));
    }
    return found;
  }
  bool has_groups(const grammar::Side& side) const {
    const auto terms = pattern.terms.subspan(side.first, side.last - side.first);
    return std::any_of(terms.begin(), terms.end(),
                       [](const auto& term) { return term.has_members(); });
  }
  grammar::Pattern pattern;

 private:
  grammar::Reading reading_;
};

/// The names in a list of axes such as "h c d".
Words axis_list(std::string_view pattern, const char* what, std::string_view text) {
  if (text.empty()) return {};
  const Reader reader(text);
  const bool plain = reader.pattern.sides.size() == 1 &&
                     std::all_of(reader.pattern.terms.begin(), reader.pattern.terms.end(),
                                 [](const grammar::Term& term) {
                                   return term.kind == grammar::TermKind::name && !term.marked;
                                 });
  if (!plain)
    refuse(ErrorKind::pattern, pattern,
           std::string(what) + " \"" + std::string(text) + "\" are to be names of axes");
  Words names;
  for (std::string& name : reader.words(reader.pattern.sides[0])) {
    if (has(names, name))
      refuse(ErrorKind::pattern, pattern, std::string(what) + " name '" + name + "' twice");
    names.push_back(std::move(name));
  }
  return names;
}

Shape shape_of(std::string_view pattern, const Words& axes,
               std::span<const RuntimeAxisSize> sizes) {
  Shape shape;
  for (const std::string& axis : axes) {
    const auto given = std::find_if(sizes.begin(), sizes.end(),
                                    [&](const RuntimeAxisSize& size) { return size.name == axis; });
    if (given == sizes.end())
      refuse(ErrorKind::axis_argument, pattern, "the size of '" + axis + "' is not given");
    shape.push_back(require_size("EinMix", axis.c_str(), given->size));
  }
  return shape;
}

/// The bias's axes as they stand in the output, from the first of them on; the others stretch.
std::string bias_pattern(std::string_view pattern, const Words& output, const Words& bias) {
  for (const std::string& axis : bias) {
    if (!has(output, axis))
      refuse(ErrorKind::pattern, pattern, "the output lacks the bias's axis '" + axis + "'");
  }
  Words aligned;
  for (const std::string& word : output) {
    if (aligned.empty() && !has(bias, word)) continue;
    if (word == "...")
      refuse(ErrorKind::pattern, pattern, "the bias has axes before the output's '...'");
    aligned.push_back(has(bias, word) ? word : "1");
  }
  return joined(bias) + " -> " + joined(aligned);
}

}  // namespace

EinMix::EinMix(std::string_view pattern, std::string_view weight_axes, std::string_view bias_axes,
               std::span<const RuntimeAxisSize> sizes)
    : sizes_(sizes.begin(), sizes.end()) {
  const Reader reader(pattern);
  if (reader.pattern.output_count != 1 || reader.pattern.inputs().size() != 1) {
    refuse(ErrorKind::pattern, pattern, "wants one input, '->' and one output");
  }
  if (reader.pattern.has_sums())
    refuse(ErrorKind::pattern, pattern, "has a sum of axes, which rearrange splits and joins");
  const grammar::Side &left = reader.pattern.inputs()[0], &right = reader.pattern.output();
  const Words input = reader.words(left), output = reader.words(right);
  const Words weight_names = axis_list(pattern, "weight axes", weight_axes);
  const Words bias_names = axis_list(pattern, "bias axes", bias_axes);
  if (weight_names.empty()) refuse(ErrorKind::pattern, pattern, "the weight has no axes");
  for (const std::string& axis : weight_names) {
    if (!has(input, axis) && !has(output, axis)) {
      refuse(ErrorKind::pattern, pattern, "the weight's axis '" + axis + "' is in neither side");
    }
  }
  for (const RuntimeAxisSize& size : sizes_) {
    if (!has(input, size.name) && !has(output, size.name)) {
      refuse(ErrorKind::axis_argument, pattern,
             "has no axis '" + size.name + "', whose size is given");
    }
  }

  double products = 1;
  const Shape weight_shape = shape_of(pattern, weight_names, sizes_);
  for (std::size_t i = 0; i < weight_names.size(); ++i) {
    if (!has(output, weight_names[i])) products *= static_cast<double>(weight_shape[i]);
  }
  weight = empty(weight_shape);
  init::uniform(weight, -std::sqrt(3 / products), std::sqrt(3 / products));
  add_parameter("weight", weight);
  product_ = std::string(reader.pattern.text_of(left.span)) + ", " + joined(weight_names) + " -> " +
             joined(output);
  const bool has_braces = std::any_of(
      reader.pattern.terms.begin() + right.first, reader.pattern.terms.begin() + right.last,
      [](const auto& term) { return term.kind == grammar::TermKind::brace; });
  if (has_braces) refuse(ErrorKind::pattern, pattern, "braces stand in the input alone");
  if (reader.has_groups(right))
    groups_ = joined(output) + " -> " + std::string(reader.pattern.text_of(right.span));
  if (bias_names.empty()) return;
  bias_pattern_ = bias_pattern(pattern, output, bias_names);
  bias = empty(shape_of(pattern, bias_names, sizes_));
  init::uniform(*bias, -1 / std::sqrt(products), 1 / std::sqrt(products));
  add_parameter("bias", *bias);
}

Tensor EinMix::forward(const Tensor& x) const {
  const std::vector<AxisSize> sizes(sizes_.begin(), sizes_.end());
  const Tensor gathered = used(weight);
  const Tensor* const operands[] = {&x, &gathered};
  Tensor y =
      detail::run_one({Operation::einsum, detail::PatternArgument(product_), operands, sizes});
  if (bias) y = y + rearrange(used(*bias), runtime(bias_pattern_)).to(y.dtype());
  return groups_.empty() ? y : rearrange(y, runtime(groups_));
}

}  // namespace ein::nn
