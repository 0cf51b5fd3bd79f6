#include <ein/nn/conv.hpp>

#include <algorithm>
#include <cmath>
#include <span>

#include <ein/create.hpp>
#include <ein/detail/pattern_message.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/grammar/parse.hpp>
#include <ein/nn/init.hpp>
#include <ein/ops.hpp>
#include "graph/diagnostic.hpp"
#include "nn/require.hpp"
#include "nn/words.hpp"

namespace ein::nn {
namespace {

using grammar::Term;
using grammar::TermKind;
/// An axis in brackets, and the windows along it.
struct Window {
  std::size_t word = 0;      // where the axis stands
  std::string axis, offset;  // the names of the first element's position and of one in the window
  std::int64_t size = 1, stride = 1, padding = 0, dilation = 1, more = 0;

  std::string brace(const std::string& size_name = "") const {
    const auto times = [](std::int64_t factor, const std::string& name) {
      return (factor == 1 ? "" : std::to_string(factor) + "*") + name;
    };
    return "{" + times(stride, axis) + " + " + times(dilation, offset) +
           (padding > 0 ? " - " + std::to_string(padding) : "") +
           (size_name.empty() ? "" : " : " + size_name) + "}";
  }
};

/// The axes of an input as a layer is told them, those in brackets with their windows.
class Axes {
 public:
  Axes(const char* layer, std::string_view text)
      : layer_(layer),
        text_(text),
        reading_(grammar::parse_pattern(text)),
        pattern_(reading_.buffer.pattern(text)) {
    if (const grammar::Mistake& mistake = reading_.mistake) {
      const grammar::Words said = grammar::words_for(Operation::rearrange, pattern_, mistake, {});
      fail(said.kind, layer, std::string(said.headline.view()), text,
           grammar::places_of(pattern_, mistake, {}));
    }
    if (pattern_.sides.size() != 1 || pattern_.has_arrow())
      complain({}, "the axes of the input alone are wanted");
    for (const Term& term : pattern_.terms) add(term);
    if (windows.empty()) complain({}, "no axis is in brackets: windows go along these");
    for (Window& window : windows) window.offset = new_name("k" + window.axis);
  }

  /// The place of the last name outside of brackets.
  std::size_t channels() const {
    for (std::size_t i = words.size(); i > 0; --i) {
      const bool is_along = std::any_of(windows.begin(), windows.end(),
                                        [&](const Window& window) { return window.word == i - 1; });
      if (!is_along && words[i - 1] != "...") return i - 1;
    }
    complain({}, "no axis is outside of the brackets: channels are wanted");
  }
  /// `name`, or if that is taken one that is not.
  std::string new_name(const std::string& name) {
    std::string free = name;
    for (int n = 2; std::find(names_.begin(), names_.end(), free) != names_.end(); ++n)
      free = name + std::to_string(n);
    return names_.emplace_back(free);
  }
  /// Says `what` of each window, numbers of at least `least`.
  void set(std::int64_t Window::*what, const char* name, const PerAxis& numbers,
           std::int64_t least) {
    const std::span<const Size> given = numbers.numbers();
    if (given.size() != 1 && given.size() != windows.size()) {
      fail(ErrorKind::arity, layer_,
           std::to_string(given.size()) + " numbers are given as " + name + ", for " +
               count_axes(windows.size()) + " in brackets",
           text_, {}, {"help: give one for each axis, or one for all"});
    }
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const std::string along = name + (" along '" + windows[i].axis + "'");
      const std::int64_t number =
          require_at_least(least, layer_, along.c_str(), given[given.size() == 1 ? 0 : i]);
      if (number > most) {
        throw Error(ErrorKind::overflow, std::string(layer_) + ": " + along + " is " +
                                             std::to_string(number) + ", at most " +
                                             std::to_string(most) + " is wanted");
      }
      windows[i].*what = number;
    }
  }
  void set(const PerAxis& kernel, const PerAxis& stride, const PerAxis& padding,
           const PerAxis& dilation) {
    set(&Window::size, "kernel", kernel, 1);
    set(&Window::stride, "stride", stride, 1);
    set(&Window::padding, "padding", padding, 0);
    set(&Window::dilation, "dilation", dilation, 1);
  }

  Words words;
  std::vector<Window> windows;

 private:
  /// Sums of products of two such numbers have 63 bits.
  static constexpr std::int64_t most = (std::int64_t{1} << 30) - 1;

  void add(const Term& term) {
    const std::string word(pattern_.text_of(term.span));
    const bool is_plain = term.kind == TermKind::name && term.value == 0 && !term.is_placed();
    if (!is_plain && (term.kind != TermKind::ellipsis || term.marked))
      complain(term.span, "names of axes are wanted, without sizes, groups and braces");
    if (!is_plain && !words.empty()) complain(term.span, "'...' stands before all other axes");
    if (is_plain && std::find(words.begin(), words.end(), word) != words.end())
      complain(term.span, "the axis '" + word + "' stands twice");
    if (term.marked) windows.push_back({.word = words.size(), .axis = word, .offset = ""});
    words.push_back(word);
    names_.push_back(word);
  }
  [[noreturn]] void complain(SourceSpan span, const std::string& what) const {
    std::vector<Mark> marks;
    if (span.end > 0) marks.push_back({span, ""});
    fail(ErrorKind::pattern, layer_, what, text_, marks,
         {"help: \"b [y x] c\" is a batch of images, their channels last"});
  }

  const char* layer_;
  std::string_view text_;
  grammar::Reading reading_;
  grammar::Pattern pattern_;
  Words names_;
};

void require_groups(const char* layer, const char* what, std::int64_t channels,
                    std::int64_t groups) {
  if (channels % groups == 0) return;
  throw Error(ErrorKind::value, std::string(layer) + ": " + std::to_string(groups) +
                                    " groups do not divide " + what + " " +
                                    std::to_string(channels));
}

}  // namespace

ConvLayer::ConvLayer(bool is_transposed, std::string_view text, std::int64_t in, std::int64_t out,
                     const PerAxis& kernel, const ConvTransposeOptions& options) {
  const char* const layer = is_transposed ? "ConvTranspose" : "Conv";
  const std::int64_t groups = require_size(layer, "groups", options.groups);
  require_groups(layer, "in", require_size(layer, "in", in), groups);
  require_groups(layer, "out", require_size(layer, "out", out), groups);
  Axes axes(layer, text);
  axes.set(kernel, options.stride, options.padding, options.dilation);
  axes.set(&Window::more, "output_padding", options.output_padding, 0);

  const std::size_t channels = axes.channels();
  const std::string c = axes.words[channels], o = axes.new_name("o"), g = axes.new_name("g");
  const auto in_groups = [&](const std::string& size, const std::string& name) {
    return groups == 1 ? name : "(" + g + size + " " + name + ")";
  };
  // The side of the windows and the side of their first elements.
  Words wide = axes.words, narrow = axes.words, weights;
  Shape shape;
  double products = 1;
  for (const Window& window : axes.windows) {
    std::string size_name;
    if (window.more > 0) {
      if (window.more >= std::max(window.stride, window.dilation)) {
        throw Error(ErrorKind::value, "ConvTranspose: output_padding along '" + window.axis +
                                          "' is " + std::to_string(window.more) +
                                          ", less than stride or dilation is wanted");
      }
      size_name = axes.new_name("n" + window.axis);
      sizes_.push_back({size_name, axes.words.size() - window.word, window.stride,
                        window.dilation * (window.size - 1) + window.more + 1 - 2 * window.padding -
                            window.stride});
    }
    wide[window.word] = window.brace(size_name);
    weights.push_back(window.offset);
    shape.push_back(window.size);
    products *= static_cast<double>(window.size);
  }
  const std::string from = in_groups("=" + std::to_string(groups), c), to = in_groups("", o);
  (is_transposed ? narrow : wide)[channels] = from;
  (is_transposed ? wide : narrow)[channels] = to;
  weights.push_back(is_transposed ? in_groups("", c) : c);
  weights.push_back(is_transposed ? o : to);
  shape.push_back(is_transposed ? in : in / groups);
  shape.push_back(is_transposed ? out / groups : out);
  pattern_ = joined(is_transposed ? narrow : wide) + ", " + joined(weights) + " -> " +
             joined(is_transposed ? wide : narrow);

  // PyTorch takes the second dimension of its weights for the fan in, also of a transpose, where
  // that is the channels of the result.
  products *= static_cast<double>((is_transposed ? out : in) / groups);
  const double bound = 1 / std::sqrt(products);
  weight = empty(shape);
  init::uniform(weight, -bound, bound);
  add_parameter("weight", weight);
  if (!options.with_bias) return;
  bias_pattern_ = "o -> o";
  for (std::size_t i = channels + 1; i < axes.words.size(); ++i) bias_pattern_ += " 1";
  init::uniform(bias.emplace(empty({out})), -bound, bound);
  add_parameter("bias", *bias);
}

Tensor ConvLayer::forward(const Tensor& x) const {
  std::vector<AxisSize> sizes;
  for (const NamedSize& size : sizes_) {
    // What is wrong where there is no such dimension, or its size too large, the einsum says.
    const Size n = size.from_end <= x.rank() ? x.shape()[x.rank() - size.from_end] : Size(0);
    Size wanted = 0;
    if (multiply_overflows(n, size.scale, wanted) || add_overflows(wanted, size.more, wanted))
      wanted = 0;
    sizes.push_back({size.name, wanted});
  }
  const Tensor gathered = used(weight);
  const Tensor* const operands[] = {&x, &gathered};
  const Tensor y =
      detail::run_one({Operation::einsum, detail::PatternArgument(pattern_), operands, sizes});
  return bias ? y + rearrange(used(*bias), runtime(bias_pattern_)).to(y.dtype()) : y;
}

Conv::Conv(std::string_view axes, std::int64_t in, std::int64_t out, const PerAxis& kernel,
           const ConvOptions& options)
    : ConvLayer(false, axes, in, out, kernel,
                {.stride = options.stride,
                 .padding = options.padding,
                 .dilation = options.dilation,
                 .groups = options.groups,
                 .with_bias = options.with_bias}) {}

ConvTranspose::ConvTranspose(std::string_view axes, std::int64_t in, std::int64_t out,
                             const PerAxis& kernel, const ConvTransposeOptions& options)
    : ConvLayer(true, axes, in, out, kernel, options) {}

namespace {

/// The pattern of a pool, and the sizes of its windows.
std::pair<std::string, std::vector<RuntimeAxisSize>> pool_pattern(std::string_view text,
                                                                  const PerAxis& kernel,
                                                                  const PoolOptions& options) {
  Axes axes("Pool", text);
  axes.set(kernel, options.stride.value_or(kernel), options.padding, options.dilation);
  Words wide = axes.words;
  std::vector<RuntimeAxisSize> sizes;
  for (const Window& window : axes.windows) {
    // padding > dilation · (size - 1), which may exceed 63 bits
    if (window.padding > 0 && (window.padding - 1) / window.dilation >= window.size - 1) {
      throw Error(ErrorKind::value, "Pool: padding along '" + window.axis + "' is " +
                                        std::to_string(window.padding) +
                                        ", so that the first window would be wholly outside");
    }
    wide[window.word] = window.brace();
    sizes.push_back({window.offset, window.size});
  }
  return {joined(wide) + " -> " + joined(axes.words), std::move(sizes)};
}

}  // namespace

Pool::Pool(std::string_view axes, const ReductionFor<Tensor>& reduction, const PerAxis& kernel,
           const PoolOptions& options)
    : PatternLayer(Operation::reduce, pool_pattern(axes, kernel, options), reduction.reduction()) {}

}  // namespace ein::nn
