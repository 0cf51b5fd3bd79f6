#include "cpu/strip_type.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cpu/strip_loops.hpp"
#include "nest/integer_range.hpp"
#include "size/ask.hpp"

namespace ein::host {
namespace {

using Range = IntegerRange;
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
    const auto is = [&](const Known& value) {
      steps_.push_back(value);
      return true;
    };
    switch (step.op) {
      case input:
        return add_input(inputs_[static_cast<std::size_t>(step.which)]);
      case constant:
        return is(fit({step.integer, step.integer}));
      case index:  // counted up modulo 2^bits
        return is({});
      case bit_and:
        if (known == 1 && (a ? a : b)->low >= 0) return is(Range{0, (a ? a : b)->high});
        break;
      case where:
        if (!a) return false;
        break;
      case shift_left:  // by 32 and more nothing is left in so many bits
        if (!b) return false;
        return is(a && b->low >= 0 && b->high < 32 ? shifted_left(*a, *b) : Known());
      default:
        break;
    }
    if (known < info(step.op).arity) return keeps_bits(step.op) && is({});
    if (step.op == ScalarOp::pow) return is({});
    const Range ranges[] = {a.value_or(Range{}), b.value_or(Range{}), c.value_or(Range{})};
    const Known range = range_of(step.op, std::span(ranges).first(static_cast<std::size_t>(known)));
    return range && is(fit(*range));
  }

  /// Whether the value modulo 2^bits follows from the arguments modulo 2^bits.
  static bool keeps_bits(ScalarOp op) {
    using enum ScalarOp;
    return op == neg || op == ScalarOp::add || op == sub || op == mul || op == bit_and ||
           op == bit_or || op == bit_xor || op == where;
  }

  bool add_input(DType dtype) {
    if (is_floating(dtype) || size_of(dtype) == 8) return false;  // longer strips gain nothing
    visit(dtype, [&]<class T>(std::type_identity<T>) {
      using Limits = std::numeric_limits<T>;
      if constexpr (Limits::is_integer)
        steps_.push_back(fit(
            {static_cast<std::int64_t>(Limits::min()), static_cast<std::int64_t>(Limits::max())}));
    });
    return true;
  }

  Known fit(const Range& range) const {
    const std::int64_t most = (std::int64_t{1} << (bits_ - 1)) - 1;
    return range.low >= -most - 1 && range.high <= most ? Known(range) : Known();
  }
  /// Of at most 31.
  Known shifted_left(const Range& a, const Range& by) const {
    const auto times = [](std::int64_t x, std::int64_t by) { return x * (std::int64_t{1} << by); };
    return fit({std::min(times(a.low, by.low), times(a.low, by.high)),
                std::max(times(a.high, by.low), times(a.high, by.high))});
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
