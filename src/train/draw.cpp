#include "train/draw.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <ein/error.hpp>
#include "graph/domain.hpp"

namespace ein::training {

void require_filters(const DrawFilters& filters) {
  require_in(not_negative, "sample", "temperature", filters.temperature);
  require_at_least(0, "sample", "top k", filters.top_k);
  require_in({0, 1, true}, "sample", "top p", filters.top_p);
  require_in(fraction, "sample", "min p", filters.min_p);
}

std::int32_t draw(std::span<const float> logits, const DrawFilters& filters, double u) {
  const auto logit = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
  // No order has NaN.
  const bool has_nan =
      std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); });
  if (has_nan || !std::isfinite(*std::max_element(logits.begin(), logits.end())))
    throw Error(ErrorKind::value, "sample: the logits of the model are not finite");
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  });
  if (filters.temperature == 0) return order[0];
  if (filters.top_k > 0)
    order.resize(std::min(order.size(), static_cast<std::size_t>(filters.top_k)));

  std::vector<double> weights;
  for (const std::int32_t token : order)
    weights.push_back(std::exp((logit(token) - logit(order[0])) / filters.temperature));
  if (filters.top_p < 1) {
    const double wanted = filters.top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
    std::size_t kept = 0;
    for (double sum = 0; kept < weights.size() && sum < wanted; ++kept) sum += weights[kept];
    weights.resize(std::max<std::size_t>(kept, 1));
  }
  // That of the likeliest is 1.
  while (weights.back() < filters.min_p) weights.pop_back();

  double rest = u * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if ((rest -= weights[i]) < 0) return order[i];
  }
  return order[weights.size() - 1];
}

}  // namespace ein::training
