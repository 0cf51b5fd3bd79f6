// softmax, log_softmax and cross_entropy: all from x - max x and Σ exp(x - max x).
#include <algorithm>
#include <optional>
#include <vector>

#include "graph/named.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

struct Exponentials {
  NamedValue max, exp, sum;  // of each row, of each element, of each row
};

/// The results do not depend on the maximum, which keeps exp in range; it is a constant to
/// differentiation.
Exponentials exponentials(NamedBuild& b) {
  const NamedValue max = b.reduce(Combine::max, b.operand(0), b.rows(), b.dtype());
  b.detach(max);
  const Ex shifted = Ex::input(0) - Ex::input(1);
  const NamedValue exp = b.map({b.operand(0), max}, Ex::apply(ScalarOp::exp, shifted), b.full());
  return {max, exp, b.reduce(Combine::sum, exp, b.rows(), b.wide())};
}

/// Rows without elements have no maximum, and no results either.
bool is_empty(const NamedBuild& b) { return ask_equal(numel(b.full().shape), 0); }
Graph finish_empty(NamedBuild& b) {
  return b.finish({b.map({b.operand(0)}, Ex::input(0), b.full(), b.dtype(), b.wide())});
}

/// The axes of the logits, then those that only the targets have.
Place each_loss(const NamedBuild& b) {
  Place each = b.rows();
  const Place of_targets = b.rows(b.operand(1).access);
  for (std::size_t d = 0; d < of_targets.access.size(); ++d) {
    if (uses(each.access, of_targets.access[d].terms[0].axis)) continue;
    each.access.push_back(of_targets.access[d]);
    each.shape.push_back(of_targets.shape[d]);
  }
  return each;
}

}  // namespace

Graph build_softmax(NamedBuild& b) {
  b.require_floating();
  if (is_empty(b)) return finish_empty(b);
  const Exponentials e = exponentials(b);
  return b.finish(
      {b.map({e.exp, e.sum}, Ex::input(0) / Ex::input(1), b.full(), b.dtype(), b.wide())});
}

Graph build_log_softmax(NamedBuild& b) {
  b.require_floating();
  if (is_empty(b)) return finish_empty(b);
  const Exponentials e = exponentials(b);
  const Ex formula = (Ex::input(0) - Ex::input(1)) - Ex::apply(ScalarOp::log, Ex::input(2));
  return b.finish({b.map({b.operand(0), e.max, e.sum}, formula, b.full(), b.dtype(), b.wide())});
}

namespace {

/// What a map reads.
struct Inputs {
  std::vector<NamedValue> values{};
  Ex add(const NamedValue& value) {
    values.push_back(value);
    return Ex::input(static_cast<int>(values.size()) - 1);
  }
};

/// The losses of each target, and what a mean divides their sum by the sum of; none: by their
/// number.
struct Losses {
  NamedValue each;
  std::optional<NamedValue> weights{};
};

class CrossEntropy {
 public:
  explicit CrossEntropy(NamedBuild& b)
      : b_(b),
        each_(each_loss(b)),
        smoothing_(b.call().named.smoothing),
        weights_(b.operand_count() > 2 ? std::optional(weight(b, 2, "weights")) : std::nullopt) {
    if (!is_empty(b)) e_ = exponentials(b);
  }

  const Place& each() const { return each_; }
  Losses losses(const Place& place, DType dtype) {
    return has_classes(b_.operand(1).access) ? of_probabilities(place, dtype)
                                             : of_positions(place, dtype);
  }

 private:
  bool has_classes(const Access& access) const { return uses(access, b_.marked_axis()); }
  /// -log softmax, of the logit and what is there of its row.
  static Ex surprise(const Ex& logit, const Ex& most, const Ex& sum) {
    return Ex::apply(ScalarOp::log, sum) - (logit - most);
  }
  Ex share() const { return Ex(smoothing_) / points_of(b_.marked_sizes()); }

  /// Σ over the classes of their -log softmax, by their weights and by `target`, if there is one.
  NamedValue summed(const NamedValue* target, const Place& rows) {
    Inputs in;
    const Ex logit = in.add(b_.operand(0)), most = in.add(e_->max), sum = in.add(e_->sum);
    Ex term = surprise(logit, most, sum);
    if (target) {
      const Ex given = in.add(*target);
      term = term * (smoothing_ == 0 ? given : given * Ex(1 - smoothing_) + share());
    }
    if (weights_) term = term * in.add(*weights_);
    Place all = rows;
    const Place classes = b_.marked();
    all.access.insert(all.access.end(), classes.access.begin(), classes.access.end());
    for (const Size size : classes.shape) all.shape.push_back(size);
    return b_.reduce(Combine::sum, b_.map(in.values, term, all), rows, b_.wide());
  }

  Losses of_probabilities(const Place& place, DType dtype) {
    b_.require_floating(1);
    require_no_wider(b_, 1, "targets");
    if (b_.call().named.ignored) {
      b_.complain(ErrorKind::value, "probabilities have no target that is ignored", {},
                  "give their losses the weight 0");
    }
    if (!e_) return {b_.map({}, Ex(0.0), place, dtype, b_.wide())};
    const NamedValue target = b_.operand(1), sum = summed(&target, each_);
    return {b_.map({sum}, Ex::input(0), place, dtype, b_.wide())};
  }

  Losses of_positions(const Place& place, DType dtype) {
    NamedValue targets = b_.positions(1);
    const std::optional<NamedValue> counts = counted(targets);
    if (counts) targets = used(targets, *counts);
    const std::vector<Axis>& axes = b_.solved().axes;
    const NamedValue picked = b_.gather(b_.operand(0), targets, each_, axes, true);
    if (!e_) return {b_.map({picked}, Ex::input(0), place, dtype, b_.wide()), counts};
    Inputs in;
    const Ex logit = in.add(picked), most = in.add(e_->max), sum = in.add(e_->sum);
    Ex loss = surprise(logit, most, sum);
    std::optional<NamedValue> by = counts;
    if (weights_) {
      by = b_.gather(*weights_, targets, each_, axes);
      if (counts) by = b_.map({*by, *counts}, where(Ex::input(1), Ex::input(0), Ex(0.0)), each_);
      loss = loss * in.add(*by);
    }
    if (smoothing_ != 0)
      loss = loss * Ex(1 - smoothing_) + in.add(summed(nullptr, b_.rows())) * share();
    if (counts) loss = where(in.add(*counts), loss, Ex(0.0));
    return {b_.map(in.values, loss, place, dtype, b_.wide()), by};
  }

  /// 1 where a target counts and 0 where it is ignored, if some may be.
  std::optional<NamedValue> counted(const NamedValue& targets) {
    const std::optional<std::int64_t> ignored = b_.call().named.ignored;
    if (!ignored) return std::nullopt;
    const Ex differs = Ex::apply(ScalarOp::ne, Ex::input(0), Ex::integer(*ignored));
    return b_.map({targets}, differs, targets_place(), b_.wide(), DType::i64);
  }
  /// Targets that are ignored as some other class, as they need not be one.
  NamedValue used(const NamedValue& targets, const NamedValue& counts) {
    return b_.map({targets, counts}, where(Ex::input(1), Ex::input(0), Ex::integer(0)),
                  targets_place(), DType::i64, DType::i64);
  }
  Place targets_place() const { return {b_.operand(1).access, b_.operand_type(1).shape}; }

  NamedBuild& b_;
  Place each_;
  double smoothing_;
  std::optional<NamedValue> weights_;
  std::optional<Exponentials> e_;  // none of rows without elements
};

}  // namespace

Graph build_cross_entropy(NamedBuild& b) {
  b.require_floating();
  CrossEntropy entropy(b);
  const Place& each = entropy.each();
  const Place result = b.call().pattern.has_arrow() ? b.result() : Place{};
  const std::vector<Size> marked = b.marked_sizes();
  const auto is_zero = [](Size size) { return ask_equal(size, 0); };
  if (std::any_of(marked.begin(), marked.end(), is_zero) && numel(each.shape) > 0) {
    b.complain(ErrorKind::reduction, "there is no target among no elements", b.marks_of_brackets());
  }
  std::vector<Size> averaged;  // losses for each result
  for (std::size_t d = 0; d < each.access.size(); ++d) {
    if (!uses(result.access, each.access[d].terms[0].axis)) averaged.push_back(each.shape[d]);
  }
  if (averaged.empty()) return b.finish({entropy.losses(result, b.dtype()).each});
  const Losses losses = entropy.losses(each, b.wide());
  const NamedValue sum = b.reduce(Combine::sum, losses.each, result, b.wide());
  if (!losses.weights) {
    const Ex mean = Ex::input(0) / points_of(averaged);
    return b.finish({b.map({sum}, mean, result, b.dtype(), b.wide())});
  }
  // Of all points, also where the weights lack an axis of the losses.
  const NamedValue by =
      b.reduce(Combine::sum, b.map({*losses.weights}, Ex::input(0), each), result, b.wide());
  return b.finish({b.map({sum, by}, Ex::input(0) / Ex::input(1), result, b.dtype(), b.wide())});
}

}  // namespace ein
