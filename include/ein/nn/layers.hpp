// Layers with weights, and what stands between them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ein/nn/module.hpp>
#include <ein/nn/typed_layers.hpp>

namespace ein::nn {

// Sizes below 1 are Errors of kind `value`.

/// x · weight (+ bias) along the last axis: (..., in) -> (..., out). weight is (in, out), or (out,
/// in) as PyTorch and CS336 have it, normal of standard deviation 1/√in at first; bias is (out), 0
/// at first. Parameters "weight", "bias".
class Linear : public Layer {
 public:
  enum class Axes : std::uint8_t { in_out, out_in };
  Linear(std::int64_t in, std::int64_t out, bool with_bias = true, Axes axes = Axes::in_out);
  Tensor forward(const Tensor& x) const override;

  Tensor weight;
  std::optional<Tensor> bias;

 private:
  Axes axes_;
};

/// The rows of weight (count, dim) at integer positions: (...) -> (..., dim). Standard normal at
/// first. Parameter "weight".
class Embedding : public Layer {
 public:
  Embedding(std::int64_t count, std::int64_t dim);
  Tensor forward(const Tensor& positions) const override;

  Tensor weight;
};

/// Layer norm over the last axis, of size dim (see ein::layer_norm). Parameters "weight" (1 at
/// first), "bias" (0 at first).
class LayerNorm : public SameAxes {
 public:
  explicit LayerNorm(std::int64_t dim, bool with_bias = true, double eps = 1e-5);
  Tensor forward(const Tensor& x) const override;

  Tensor weight;
  std::optional<Tensor> bias;

 private:
  double eps_;
};

/// RMS norm over the last axis, of size dim (see ein::rms_norm). Parameter "weight" (1 at first);
/// or where `adds_one`, as Gemma has it, the gain is 1 + weight (0 at first).
class RMSNorm : public SameAxes {
 public:
  explicit RMSNorm(std::int64_t dim, double eps = 1e-6, bool adds_one = false);
  Tensor forward(const Tensor& x) const override;

  Tensor weight;

 private:
  double eps_;
  bool adds_one_;
};

/// Which norm a model has.
struct NormConfig {
  enum class Kind : std::uint8_t { layer, rms, none };
  Kind kind = Kind::layer;
  double eps = 1e-5;
  bool bias = true;       ///< of a layer norm
  bool adds_one = false;  ///< of an RMS norm
  friend bool operator==(const NormConfig&, const NormConfig&) = default;
};
/// A LayerNorm or an RMSNorm; null where there is none.
std::unique_ptr<SameAxes> make_norm(std::int64_t dim, const NormConfig& config);

/// ein::dropout in training, else the identity. An Error of kind `value` unless 0 <= p < 1.
class Dropout : public SameAxes {
 public:
  explicit Dropout(double p);
  Tensor forward(const Tensor& x) const override;

 private:
  double p_;
};

/// A function of a tensor as a layer: `model.add<nn::Function>(ein::gelu)`.
class Function : public Layer {
 public:
  explicit Function(Tensor (*function)(const Tensor&)) : function_(function) {}
  Tensor forward(const Tensor& x) const override { return function_(x); }

 private:
  Tensor (*function_)(const Tensor&);
};

}  // namespace ein::nn
