// The pattern argument of an operation: a literal that the compiler checks, or ein::runtime(text).
#pragma once

#include <span>
#include <string_view>

#include <ein/axis.hpp>
#include <ein/detail/result_dtype.hpp>
#include <ein/dtype.hpp>
#include <ein/grammar/infer_type.hpp>
#include <ein/grammar/match.hpp>
#include <ein/grammar/numbers.hpp>
#include <ein/grammar/packed_pattern.hpp>
#include <ein/grammar/spread.hpp>
#include <ein/pattern_error.hpp>
#include <ein/reduction.hpp>

namespace ein {

/// A text known at run time only: `einsum(x, y, ein::runtime(text))`. It must live until the call
/// returns.
struct RuntimeText {
  std::string_view text;
};
inline RuntimeText runtime(std::string_view text) { return {text}; }

namespace detail {

template <class... T>
struct Types {};

/// The types of one kind among the arguments of a call.
template <class... A, class... B>
Types<A..., B...> operator+(Types<A...>, Types<B...>);
template <class... Arguments>
using SizesAmong = decltype((
    Types<>() + ... + std::conditional_t<AxisArgument<Arguments>, Types<Arguments>, Types<>>()));

/// Stands for operands whose number the call's type does not say; with EinsumOptions, which say
/// when the call runs what else the pattern may do.
struct AnyNumber {};
struct AnyNumberWithOptions {};
template <class Operand>
inline constexpr bool is_any_number =
    std::is_same_v<Operand, AnyNumber> || std::is_same_v<Operand, AnyNumberWithOptions>;

/// What an operand's type says about its axes and dtype: nothing for a Tensor. Specialised for
/// Typed, which says both, and for types that say axes alone.
template <class Operand>
struct OperandType {
  static constexpr bool is_typed = false;
};
template <class Operand>
inline constexpr bool says_axes = requires {
  OperandType<Operand>::axes();
};

template <class Operand>
constexpr int static_dtype() {
  if constexpr (OperandType<Operand>::is_typed)
    return static_cast<int>(OperandType<Operand>::dtype);
  return -1;
}
template <class Operand>
constexpr grammar::SpecReading static_axes() {
  if constexpr (says_axes<Operand>) return OperandType<Operand>::spec();
  return {};
}

/// Whether the name of an axis size is part of its type, and then the name and, maybe, the size.
template <class Size>
constexpr bool is_named = requires {
  Size::name();
};
template <class Size>
constexpr bool is_number = is_named<Size>&& requires {
  Size::is_number;
};
template <class Size>
constexpr grammar::GivenSize static_size() {
  if constexpr (requires { Size::static_size; })
    return {Size::name(), Size::static_size};
  else if constexpr (is_named<Size>)
    return {Size::name(), -1};
  else
    return {};
}

template <class Size>
constexpr grammar::GivenNumber static_number() {
  if constexpr (requires { Size::static_size; })
    return {Size::name(), Size::static_size, false};
  else if constexpr (is_named<Size>)
    return {Size::name(), 1, true};
  else
    return {};
}

/// infer(pattern) with a name for each axis where one stands for many, as the operands' types have
/// them, or with `...`; without a mistake where they tell of none.
template <class Infer>
constexpr grammar::Mistake infer_spread(const grammar::Pattern& pattern,
                                        const grammar::List<grammar::OperandSpec>& specs,
                                        const Infer& infer) {
  grammar::List<std::int64_t> ranks;
  for (const grammar::OperandSpec& spec : specs) {
    const bool is_known = spec.axes && !spec.axes->is_open();
    ranks.push_back(is_known ? static_cast<std::int64_t>(spec.axes->dims.size()) : -1);
  }
  const grammar::List<grammar::AxisCount> counts = grammar::count_axes(pattern, ranks);
  std::size_t unknowns = counts.size() == grammar::max_names_of_many ? 2 : 0;
  for (const grammar::AxisCount& axes : counts)
    unknowns += axes.count == grammar::AxisCount::unknown;
  for (const grammar::Term& term : pattern.terms)
    unknowns += unknowns > 0 && term.kind == grammar::TermKind::ellipsis;
  if (unknowns > 1) return {};
  const grammar::Spread spread = grammar::spread(pattern, counts);
  const grammar::Reading reading = grammar::match_pattern(spread.text.view());
  grammar::Mistake mistake = reading.mistake;
  if (!mistake) mistake = infer(reading.buffer.pattern(spread.text.view()));
  mistake.span = spread.origin(mistake.span);
  mistake.other = spread.origin(mistake.other);
  return mistake;
}

/// All checks that types and a literal allow; the first mistake, or none. `result` receives the
/// type of the operation's result `Which`; without it the call has one result.
template <Operation Op, std::size_t Which = 0, class... Operands, class... Sizes>
constexpr grammar::Mistake check_literal(const grammar::Pattern& pattern, Types<Operands...>,
                                         Types<Sizes...>, grammar::InferredType* result) {
  grammar::List<std::string_view> names;
  (...,
   (is_named<Sizes> && !is_number<Sizes> ? names.push_back(static_size<Sizes>().name) : void()));
  constexpr std::size_t sizes = (std::size_t{!is_number<Sizes>} + ... + 0);
  constexpr bool any_number = (is_any_number<Operands> || ...);
  constexpr bool has_options = (std::is_same_v<Operands, AnyNumberWithOptions> || ...);
  const std::size_t count = any_number ? pattern.inputs().size() : sizeof...(Operands);
  const grammar::Mistake mistake =
      grammar::check_pattern(Op, pattern, count, names, names.size() < sizes,
                             has_options ? grammar::LoneSums::allowed : grammar::LoneSums::refused,
                             result ? grammar::Results::many : grammar::Results::one);
  if (mistake) return mistake;
  if constexpr ((says_axes<Operands> || ...)) {
    const grammar::SpecReading axes[] = {static_axes<Operands>()...};
    constexpr bool are_said[] = {says_axes<Operands>...};
    const int dtypes[] = {static_dtype<Operands>()...};
    constexpr OperationInfo row = info(Op);
    constexpr bool may_differ = row.stands == OperationInfo::with_a_function || row.positions >= 0;
    grammar::List<grammar::OperandSpec> specs;
    for (std::size_t k = 0; k < sizeof...(Operands); ++k) {
      specs.push_back({are_said[k] ? &axes[k] : nullptr, may_differ ? 0 : dtypes[k]});
    }
    const grammar::List<grammar::GivenSize> given{static_size<Sizes>()...};
    constexpr auto moves = is_of_a_mesh(Op) ? grammar::Moves::yes : grammar::Moves::no;
    constexpr bool says_axes_of_result =
        row.form.brackets != grammar::Form::no_brackets || Op == Operation::place;
    const grammar::MarkedAxes* marked = nullptr;
    if constexpr (says_axes_of_result) marked = &row.axes[Which];
    const auto infer = [&](const grammar::Pattern& written) {
      const grammar::InferredType type =
          grammar::infer_type(Op, written, specs, given, moves, marked, Which);
      if (result) *result = type;
      return type.mistake;
    };
    return pattern.has_many() ? infer_spread(pattern, specs, infer) : infer(pattern);
  }
  return mistake;
}

/// The text of a literal; of an array without a final zero, all of it.
template <std::size_t N>
constexpr std::string_view literal_text(const char (&literal)[N]) {
  return {literal, literal[N - 1] == '\0' ? N - 1 : N};
}
/// A text that is no literal, where one is wanted.
template <class T, class Value = std::remove_reference_t<T>>
concept NoLiteral =
    std::convertible_to<T, std::string_view> && !(std::is_array_v<Value> && std::is_const_v<Value>);
template <class...>
inline constexpr bool never = false;

/// A pattern as the run time takes it: its text and, of a literal, its parse and whether it was
/// checked.
class PatternArgument {
 public:
  constexpr explicit PatternArgument(std::string_view text) : text_(text) {}
  /// The same with the sizes of axes that stand beside it, and which it was checked with.
  PatternArgument(const PatternArgument& checked, std::span<const AxisSize> sizes)
      : PatternArgument(checked) {
    sizes_ = sizes;
  }

  /// Reads and checks the text as a literal for operands and axis sizes of these types. `result`,
  /// if given, receives the type of the result. A very long literal without such a type is read and
  /// checked when the call runs.
  template <Operation Op, std::size_t Which = 0, class... Operands, class... Sizes>
  consteval grammar::Mistake read_literal(Types<Operands...> operands, Types<Sizes...> sizes,
                                          grammar::InferredType* result = nullptr) {
    is_literal_ = true;
    const bool is_left_to_the_call = !result && text_.size() > grammar::max_literal_bytes;
    if (is_left_to_the_call && text_.size() <= grammar::max_pattern_bytes) return {};
    grammar::Reading reading = grammar::match_pattern(text_);
    if (reading.mistake) return reading.mistake;
    const bool has_all_names = (is_named<Sizes> && ...);
    if (reading.buffer.pattern(text_).has_braces()) {
      // Which names are numbers only the call knows.
      if (!has_all_names && !result) return {};
      grammar::List<grammar::GivenNumber> numbers;
      (..., (is_number<Sizes> ? numbers.push_back(static_number<Sizes>()) : void()));
      const grammar::Mistake mistake = grammar::put_numbers(reading.buffer, text_, numbers);
      if (mistake) return mistake;
    }
    const grammar::Pattern pattern = reading.buffer.pattern(text_);
    packed_ = grammar::PackedPattern(pattern);
    drops_an_axis_ = result && pattern.drops_an_axis();
    output_count_ = pattern.output_count;
    // Names of many axes are checked again when their number is known.
    is_checked_ =
        (is_named<Sizes> && ...) && !(is_any_number<Operands> || ...) && !pattern.has_many();
    return check_literal<Op, Which>(pattern, operands, sizes, result);
  }

  constexpr std::string_view text() const { return text_; }
  const grammar::PackedPattern& packed() const { return packed_; }
  /// Whether check_pattern() has been passed for just this call.
  bool is_checked() const { return is_checked_; }
  /// Whether the output lacks an axis; said where read_literal() was asked for the result.
  constexpr bool drops_an_axis() const { return drops_an_axis_; }
  /// How many outputs a literal has.
  constexpr std::uint32_t output_count() const { return output_count_; }
  bool is_literal() const { return is_literal_; }
  /// The sizes of axes, where the call has them by no other way.
  std::span<const AxisSize> sizes() const { return sizes_; }

 private:
  std::string_view text_;
  std::span<const AxisSize> sizes_{};
  grammar::PackedPattern packed_{};
  bool is_checked_ = false;
  bool is_literal_ = false;
  bool drops_an_axis_ = false;
  std::uint32_t output_count_ = 0;
};

}  // namespace detail

/// A pattern in a type: `"b s h -> b h s"_p`. Results of typed operands then have a type that says
/// their axes.
template <FixedString Text>
struct PatternLiteral {
  static constexpr std::string_view text() { return Text.view(); }
};

/// The parameter type of an operation's pattern. A literal is checked by the compiler, against the
/// types of the other arguments; ein::runtime(text) is checked when the call runs.
template <Operation Op, class Operands, class... Arguments>
class PatternFor : public detail::PatternArgument {
 public:
  template <std::size_t N>
  consteval PatternFor(const char (&literal)[N]) : PatternArgument(detail::literal_text(literal)) {
    const std::string_view text = this->text();
    const grammar::Mistake mistake =
        this->template read_literal<Op>(Operands(), detail::SizesAmong<Arguments...>());
    const pattern_error::Place place = pattern_error::place_of(mistake, text);
    if (mistake) pattern_error::function_of(mistake)(place);
  }
  template <FixedString Text>
  consteval PatternFor(PatternLiteral<Text>) : PatternFor(Text.text) {}
  template <detail::NoLiteral Variable>
  consteval PatternFor(Variable&&) : PatternArgument({}) {
    static_assert(detail::never<Variable>, "a pattern is a string literal, or ein::runtime(text)");
  }
  PatternFor(RuntimeText pattern) : PatternArgument(pattern.text) {}
  /// One that was checked with other types of the operands.
  template <class Others>
  explicit PatternFor(const PatternFor<Op, Others, Arguments...>& checked)
      : PatternArgument(checked) {}
  /// One that is in a type, and was checked there.
  explicit PatternFor(const detail::PatternArgument& checked) : PatternArgument(checked) {}
};

namespace literals {
template <FixedString Text>
constexpr PatternLiteral<Text> operator""_p() {
  return {};
}
}  // namespace literals

/// A reduction by enumerator, by a literal name that the compiler checks, or by ein::runtime(name),
/// which throws an Error of kind `reduction` for an unknown name. X is the type of the reduced
/// tensor.
template <class X>
class ReductionFor {
 public:
  ReductionFor(Reduction reduction) : reduction_(reduction) {}
  template <std::size_t N>
  consteval ReductionFor(const char (&name)[N]) {
    const std::string_view word = detail::literal_text(name);
    const std::optional<Reduction> found = parse_reduction(word);
    if (!found) pattern_error::reduction_is_unknown(word);
    if constexpr (detail::OperandType<X>::is_typed) {
      if (wants_floating(*found) && is_integral(detail::OperandType<X>::dtype)) {
        pattern_error::reduction_wants_a_floating_point_dtype(word);
      }
    }
    reduction_ = *found;
  }
  template <detail::NoLiteral Variable>
  consteval ReductionFor(Variable&&) {
    static_assert(detail::never<Variable>,
                  "a reduction is a string literal, or ein::runtime(name)");
  }
  ReductionFor(RuntimeText name) : reduction_(reduction_named(name.text)) {}
  Reduction reduction() const { return reduction_; }

 private:
  Reduction reduction_{};
};

}  // namespace ein
