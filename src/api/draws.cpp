// bernoulli and multinomial: draws by uniform numbers.
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "graph/named.hpp"
#include "runtime/call_pattern.hpp"
#include "runtime/map.hpp"
#include "runtime/mesh.hpp"
#include "runtime/trace.hpp"

namespace ein {
namespace {

bool is_any(const Tensor& condition) {
  return reduce(condition, "... ->", Reduction::any).item<std::int64_t>() != 0;
}

}  // namespace

Tensor bernoulli(const Tensor& p) {
  if (!is_floating(p.dtype())) {
    throw Error(ErrorKind::dtype,
                "bernoulli: " + std::string(name(p.dtype())) + " is not a floating-point dtype");
  }
  // A traced value has no elements to look at.
  if (!engine::Trace::active() && is_any(logical_not(p >= 0 && p <= 1))) {
    throw Error(ErrorKind::value, "bernoulli: a probability of p, of shape " +
                                      p.shape().to_string() + ", is outside [0, 1]");
  }
  const DType wide = compute_type(p.dtype());
  const Tensor u = engine::lying_as(rand(p.shape(), wide, p.device()), p);
  const Tensor* const operands[] = {&p, &u};
  const Ex is_one = Ex::apply(ScalarOp::lt, Ex::input(1), Ex::input(0));
  return engine::map("bernoulli", is_one, operands, wide, p.dtype());
}

Tensor multinomial(const Tensor& probabilities,
                   const detail::NamedPattern1<Operation::multinomial>& pattern, Size samples) {
  constexpr auto op = Operation::multinomial;
  const Shape& given = probabilities.shape();
  const CallPattern parsed(op, pattern, {}, std::span(&given, 1));
  PatternCall call{.op = op, .pattern = parsed.pattern, .sizes = pattern.sizes()};
  call.is_checked = pattern.is_checked();
  require_valid(call, 1);
  const Solved solved = solve(op, parsed.pattern, std::span(&given, 1), call.sizes);
  // A dimension for each axis, and one for each of size 1 that none has.
  Shape shape;
  const Placement whole = engine::placement_of(probabilities);
  Placement lies;  // alike, but the draws of a row, which are whole
  for (std::size_t d = 0; d < given.rank(); ++d) {
    const std::vector<DimIndex::Term>& terms = solved.reads[0][d].terms;
    if (terms.empty()) shape.push_back(1), lies.dims.emplace_back();
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const auto axis = static_cast<std::size_t>(terms[t].axis);
      const bool is_drawn = solved.marked[axis] != 0;
      shape.push_back(is_drawn ? std::max<Size>(samples, 0) : solved.axes[axis].size);
      lies.dims.push_back(is_drawn || t > 0 ? Placement::Split() : whole.split(d));
    }
  }
  // The Errors of the call come before a stream is taken.
  const auto draw = [&](const Tensor& uniform) {
    const Tensor* const operands[] = {&probabilities, &uniform};
    return std::move(
        detail::run_named({op, pattern, operands, {}, {.numbers = {&samples, 1}}}).front());
  };
  const Tensor positions =
      draw(engine::lying_as(rand(shape, DType::f64, probabilities.device()), probabilities, lies));
  if (engine::Trace::active()) return positions;
  if (is_any(probabilities < 0)) {
    throw Error(ErrorKind::value, "multinomial: an element of shape " + given.to_string() +
                                      " is negative, probabilities are wanted");
  }
  if (is_any(positions < 0)) {
    throw Error(ErrorKind::value, "multinomial: the probabilities of a row, of shape " +
                                      given.to_string() +
                                      ", sum up to 0, NaN or infinity: nothing can be drawn");
  }
  return positions;
}

}  // namespace ein
