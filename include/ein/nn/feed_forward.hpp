// Feed-forward networks: one for all tokens, and mixtures of experts.
#pragma once

#include <cstdint>
#include <memory>

#include <ein/nn/layers.hpp>

namespace ein::nn {

enum class Activation : std::uint8_t {
  gelu,       ///< x · Φ(x)
  gelu_tanh,  ///< its approximation x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))): GPT-2's files,
              ///< Gemma
  silu,
  relu
};
Tensor activated(const Tensor& x, Activation activation);

/// c_proj(activation(c_fc x)), or where it is gated c_proj(activation(c_gate x) · c_fc x) (Shazeer
/// 2020): GeGLU, SwiGLU.
struct FeedForwardConfig {
  Activation activation = Activation::gelu;
  bool gated = false;
  std::int64_t width = 0;  ///< of the features inside; 0: ratio · width of the model, rounded
  double ratio = 4;
  std::int64_t multiple = 1;  ///< to the nearest multiple of this
  bool bias = true;
  /// Where it is gated: g · sigmoid(1.702·g) · (u + 1) of the gate g, at most so large, and of
  /// c_fc's u, no further from 0 (GPT-OSS, 2025); 0: as above.
  double limit = 0;
  friend bool operator==(const FeedForwardConfig&, const FeedForwardConfig&) = default;
};
/// The features inside, for a model of width dim. An Error of kind `value` where that is no size.
std::int64_t inner_width(const FeedForwardConfig& config, std::int64_t dim);

/// Modules "c_fc" (dim, inner), "c_gate" the same where it is gated, "c_proj" (inner, dim).
class MLP : public SameAxes {
 public:
  /// With gelu, and four times as many features inside.
  explicit MLP(std::int64_t dim, bool with_bias = true, double dropout = 0);
  MLP(std::int64_t dim, const FeedForwardConfig& config, double dropout = 0);
  Tensor forward(const Tensor& x) const override;

  Linear c_fc, c_proj;
  std::unique_ptr<Linear> c_gate;  ///< null where it is not gated

 private:
  FeedForwardConfig config_;
  Dropout dropout_;
};

/// A mixture of experts (Shazeer et al. 2017): each token goes to the `chosen` experts to which the
/// router gives the largest scores, and the result is the sum of what they give, by their weights.
struct MixtureConfig {
  std::int64_t experts = 8, chosen = 2;
  FeedForwardConfig expert{.activation = Activation::silu, .gated = true, .bias = false};
  /// Weights are a softmax over the scores of the chosen experts; or of all experts, of which those
  /// of the chosen ones are kept.
  bool softmax_over_chosen = true;
  bool normalised = true;         ///< in the second case: divided by their sum
  std::int64_t shared_width = 0;  ///< of the features inside of an expert for all tokens; 0: none
  /// Tokens that an expert takes, by the mean of how many choose it: those beyond are dropped, as
  /// the sizes of a compiled function do not depend on data. 0: none is dropped, and a compiled
  /// function computes every expert for as many tokens as there are. Where there are no more
  /// choices than experts, as a token at a time, none is dropped either, and the chosen experts
  /// alone are computed.
  double capacity = 0;
  /// Scores are sigmoids instead of a softmax over all, and `softmax_over_chosen` says nothing
  /// (DeepSeek-V3, 2024). Experts lie in so many groups, and those of the chosen groups alone can
  /// be chosen: the ones whose two best scores have the largest sum.
  bool sigmoid = false;
  std::int64_t groups = 1, chosen_groups = 1;
  double scaling = 1;  ///< of the weights, where scores are sigmoids
  bool router_bias = false;
  friend bool operator==(const MixtureConfig&, const MixtureConfig&) = default;
};

/// Modules "router" (dim, experts) and "shared", an MLP; parameters "c_fc", "c_gate" (experts, dim,
/// inner) and "c_proj" (experts, inner, dim); where experts have biases "c_fc_bias", "c_gate_bias"
/// and "c_proj_bias", a row for each.
class Mixture : public SameAxes {
 public:
  /// An Error of kind `value` unless 1 <= chosen <= experts.
  Mixture(std::int64_t dim, const MixtureConfig& config, double dropout = 0);
  Tensor forward(const Tensor& x) const override { return forward(x, nullptr); }
  /// Adds to `balance`, if it is not null, experts · Σ f·p over the experts, where f is the part of
  /// the choices that an expert has, and p the mean of its softmax over all: 1 where all get alike,
  /// more otherwise (Fedus et al. 2021, eq. 4).
  Tensor forward(const Tensor& x, Tensor* balance) const;

  Linear router;
  Tensor c_fc, c_gate, c_proj;
  Tensor c_fc_bias, c_gate_bias, c_proj_bias;
  /// (experts), where scores are sigmoids: added to them for the choice alone. No parameter, as no
  /// gradient flows to it.
  Tensor correction;
  std::unique_ptr<MLP> shared;

 private:
  /// What the chosen experts make of rows (m c): in a table for each expert, of so many rows; or
  /// where there are few, each row by the weights of its expert.
  Tensor of_tables(const Tensor& rows, const Tensor& chosen, const Tensor& is_of, Size room) const;
  Tensor of_rows(const Tensor& rows, const Tensor& chosen) const;

  MixtureConfig config_;
  Dropout dropout_;
};

}  // namespace ein::nn
