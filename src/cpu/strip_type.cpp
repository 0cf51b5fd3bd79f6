#include "cpu/strip_type.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cpu/strip_loops.hpp"

namespace ein::host {
namespace {

struct Range {
  std::int64_t low, high;
};
/// Of the values of a step, if the bits hold them all.
using Known = std::optional<Range>;

/// Steps of integers of `bits` <= 32 bits.
class Analysis {
 public:
  Analysis(int bits, std::span<const DType> inputs) : bits_(bits), inputs_(inputs) {}

  /// Whether each step has its value modulo 2^bits.
  bool run(const ScalarExpr& expr) {
    return std::all_of(expr.steps.begin(), expr.steps.end(),
                       [&](const ScalarStep& step) { return add(step); });
  }
  /// Of the last step.
  Known value() const { return steps_.back(); }

 private:
  /// False for a step whose arguments or value the bits cannot hold.
  bool add(const ScalarStep& step) {
    using enum ScalarOp;
    Known args[3];
    int known = 0;
    for (int i = 0; i < info(step.op).arity; ++i) {
      args[i] = steps_[static_cast<std::size_t>(step.args[i])];
      known += args[i].has_value();
    }
    const auto& [a, b, c] = args;
    const bool all_known = known == info(step.op).arity;
    const auto is = [&](const Known& value) {
      steps_.push_back(value);
      return true;
    };
    switch (step.op) {
      case input:
        return add_input(inputs_[static_cast<std::size_t>(step.which)]);
      case constant:
        return is(fit(step.integer, step.integer));
      case index:  // counted up modulo 2^bits
        return is({});
      case neg:
        return is(all_known ? fit(-a->high, -a->low) : Known());
      case ScalarOp::add:
        return is(all_known ? fit(a->low + b->low, a->high + b->high) : Known());
      case sub:
        return is(all_known ? fit(a->low - b->high, a->high - b->low) : Known());
      case mul: {
        if (!all_known) return is({});
        const auto [low, high] =
            std::minmax({a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high});
        return is(fit(low, high));
      }
      case bit_and:
        return is(both_bits(a, b));
      case bit_or:
      case bit_xor:
        return is(all_known ? any_bits(*a, *b) : Known());
      case where:
        if (!a) return false;
        return is(b && c ? fit(std::min(b->low, c->low), std::max(b->high, c->high)) : Known());
      case shift_left:  // by 32 and more nothing is left in so many bits
        if (!b) return false;
        return is(a && b->low >= 0 && b->high < 32 ? shifted_left(*a, *b) : Known());
      default:
        break;
    }
    if (!all_known) return false;
    switch (step.op) {
      case lt:
      case le:
      case gt:
      case ge:
      case eq:
      case ne:
      case logical_not:
      case logical_and:
      case logical_or:
        return is(Range{0, 1});
      case ScalarOp::abs:
        return is(fit(a->low > 0 ? a->low : std::max<std::int64_t>(0, -a->high),
                      std::max(-a->low, a->high)));
      case ScalarOp::min:
        return is(Range{std::min(a->low, b->low), std::min(a->high, b->high)});
      case ScalarOp::max:
        return is(Range{std::max(a->low, b->low), std::max(a->high, b->high)});
      case remainder:  // has the sign of the divisor, or is 0
        return is(
            Range{std::min<std::int64_t>(0, b->low + 1), std::max<std::int64_t>(0, b->high - 1)});
      case shift_right:  // to 0 or -1 at the most
        return is(Range{a->low < 0 ? a->low : 0, a->high < 0 ? -1 : a->high});
      case ScalarOp::pow:
        return is({});
      default:
        return false;
    }
  }

  bool add_input(DType dtype) {
    if (is_floating(dtype) || size_of(dtype) == 8) return false;  // longer strips gain nothing
    visit(dtype, [&]<class T>(std::type_identity<T>) {
      using Limits = std::numeric_limits<T>;
      if constexpr (Limits::is_integer)
        steps_.push_back(fit(static_cast<std::int64_t>(Limits::min()),
                             static_cast<std::int64_t>(Limits::max())));
    });
    return true;
  }

  Known fit(std::int64_t low, std::int64_t high) const {
    const std::int64_t most = (std::int64_t{1} << (bits_ - 1)) - 1;
    return low >= -most - 1 && high <= most ? Known(Range{low, high}) : Known();
  }
  /// Nothing is set that a number without a sign has not set.
  static Known both_bits(const Known& a, const Known& b) {
    Known result;
    for (const Known& x : {a, b}) {
      if (x && x->low >= 0) result = Range{0, result ? std::min(result->high, x->high) : x->high};
    }
    return result || !a || !b ? result : any_bits(*a, *b);
  }
  /// As many bits as the longer has, and a sign where one has.
  static Range any_bits(const Range& a, const Range& b) {
    const auto magnitude = [](std::int64_t x) {
      return static_cast<std::uint64_t>(x < 0 ? ~x : x);
    };
    std::uint64_t most = 0;
    for (std::int64_t end : {a.low, a.high, b.low, b.high}) most = std::max(most, magnitude(end));
    const auto ones = static_cast<std::int64_t>((std::uint64_t{1} << std::bit_width(most)) - 1);
    return {a.low < 0 || b.low < 0 ? -ones - 1 : 0, ones};
  }
  /// Of at most 31.
  Known shifted_left(const Range& a, const Range& by) const {
    const auto times = [](std::int64_t x, std::int64_t by) { return x * (std::int64_t{1} << by); };
    return fit(std::min(times(a.low, by.low), times(a.low, by.high)),
               std::max(times(a.high, by.low), times(a.high, by.high)));
  }

  int bits_;
  std::span<const DType> inputs_;
  std::vector<Known> steps_;
};

DType integer_of(int bits) { return bits == 8 ? DType::i8 : bits == 16 ? DType::i16 : DType::i32; }

/// Whether a result of `dtype` is the value modulo 2^bits.
bool keeps(DType dtype, int bits) {
  return is_integral(dtype) && dtype != DType::boolean &&
         size_of(dtype) * 8 <= static_cast<std::size_t>(bits);
}

bool is_narrow(DType dtype) { return is_integral(dtype) && size_of(dtype) < 8; }

}  // namespace

StripType strip_type(const Schedule::Part& part) {
  const Schedule::RowNest& nest = part.rows.nests[0];
  const DType compute = part.rows.compute, output = part.places[nest.output].dtype;
  if (compute != DType::i64) return {compute};
  std::vector<DType> inputs;
  for (const std::size_t input : nest.inputs) inputs.push_back(part.places[input].dtype);

  // A conversion is one loop where a strip holds the result.
  if (!nest.combine && nest.body.is_input()) {
    const auto from = inputs[static_cast<std::size_t>(nest.body.steps[0].which)];
    if (output != DType::boolean && is_integral(output) && is_narrow(from))
      return {size_of(output) == 8 ? compute : integer_of(8 * static_cast<int>(size_of(output)))};
  }
  for (const int bits : {8, 16, 32}) {
    Analysis analysis(bits, inputs);
    if (!analysis.run(nest.body)) continue;
    const Known value = analysis.value();
    StripType type{integer_of(bits)};
    type.is_truth = value && value->low >= 0 && value->high <= 1;
    if (!nest.combine) {
      if (value || keeps(output, bits)) return type;
      continue;
    }
    if (info(*nest.combine).selects) {
      if (value) return type;
      continue;
    }
    if (nest.epilogue.steps.empty() && keeps(output, bits)) return type;
    if (nest.combine != Combine::sum || !value) continue;
    type.most = std::numeric_limits<std::int32_t>::max() /
                std::max<std::int64_t>({1, -value->low, value->high});
    if (bits == 32 && type.most >= plain_strip_size) return type;
  }
  return {compute};
}

}  // namespace ein::host
