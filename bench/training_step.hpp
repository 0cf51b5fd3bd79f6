// The training step that benchmarks measure: that of `ein train`, on one batch.
#pragma once

#include <memory>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/named.hpp>
#include <ein/nn/transformer.hpp>
#include <ein/optim.hpp>

namespace bench {

/// Forward pass, backward pass, clipping and AdamW; its products in `dtype`, f32 or one that
/// Autocast takes.
class TrainingStep {
 public:
  TrainingStep(const ein::nn::TransformerConfig& config, ein::DType dtype)
      : model_(config), dtype_(dtype) {
    ein::optim::ParameterGroup decayed, others;
    for (const ein::Tensor& p : model_.parameters())
      (p.rank() >= 2 ? decayed : others).parameters.push_back(p);
    others.weight_decay = 0;
    optimizer_ = std::make_unique<ein::optim::AdamW>(
        std::vector{decayed, others},
        ein::optim::AdamOptions{.learning_rate = 1e-3, .betas = {0.9, 0.99}, .weight_decay = 0.1});
  }

  const ein::nn::Transformer& model() const { return model_; }

  /// Of tokens and targets (batch, positions); the loss before the update.
  ein::Tensor operator()(const ein::Tensor& tokens, const ein::Tensor& targets) {
    optimizer_->zero_grad();
    ein::Tensor loss;
    {
      const ein::Autocast autocast(dtype_);
      loss = cross_entropy(model_(tokens), targets, "b s [v], b s");
    }
    loss.backward();
    const ein::NoGrad no_grad;
    ein::clip_grad_norm(optimizer_->parameters(), 1.0);
    optimizer_->step();
    return loss.detach();
  }

 private:
  ein::nn::Transformer model_;
  ein::DType dtype_;
  std::unique_ptr<ein::optim::AdamW> optimizer_;
};

}  // namespace bench
