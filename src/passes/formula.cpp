#include "passes/formula.hpp"

#include <algorithm>

#include "size/ask.hpp"

namespace ein {

int Formula::add(const ScalarStep& step) {
  const auto found = std::find(steps_.steps.begin(), steps_.steps.end(), step);
  const auto at = static_cast<int>(found - steps_.steps.begin());
  if (found == steps_.steps.end()) steps_.steps.push_back(step);
  return at;
}

int Formula::add(const ScalarExpr& expr, bool rounds) {
  std::vector<int> places;
  for (ScalarStep step : expr.steps) {
    step.move_arguments(places);
    if (rounds && step.op == ScalarOp::constant)
      step.real = static_cast<double>(static_cast<float>(step.real));
    places.push_back(add(step));
  }
  return places.back();
}

Ex Formula::value(int at) const {
  ScalarExpr upto;
  upto.steps.assign(steps_.steps.begin(), steps_.steps.begin() + at + 1);
  return Ex::of(upto);
}

}  // namespace ein
