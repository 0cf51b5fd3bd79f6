// Which token a sample takes next.
#pragma once

#include <cstdint>
#include <span>

namespace ein::training {

/// What a token is drawn from. The filters act in this order, each on what the one before left:
/// temperature, top_k, top_p, min_p.
struct DrawFilters {
  double temperature = 0.8;  ///< probabilities are softmax(logits / temperature); 0: the likeliest
  std::int64_t top_k = 0;    ///< so many likeliest; 0: all
  /// The smallest number of likeliest tokens whose probabilities, of those that top_k left, sum to
  /// this at least (Holtzman et al. 2020); at least one.
  double top_p = 1;
  double min_p = 0;  ///< tokens at least this times as likely as the likeliest (Nguyen et al. 2024)
};

/// An Error of kind `value` for a filter outside its domain: 0 <= temperature, 0 <= top_k, 0 <
/// top_p
/// <= 1, 0 <= min_p <= 1.
void require_filters(const DrawFilters& filters);

/// A token drawn from what the filters leave; `u` is uniform in [0, 1). Of equally likely tokens
/// that of the smaller id stands first. An Error of kind `value` where a logit is NaN or none is
/// finite; there is at least one logit.
std::int32_t draw(std::span<const float> logits, const DrawFilters& filters, double u);

}  // namespace ein::training
