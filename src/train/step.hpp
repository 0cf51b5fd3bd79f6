// A step of training a decoder, as `ein train` makes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <ein/grad_scaler.hpp>
#include <ein/nn/transformer.hpp>
#include <ein/optim.hpp>
#include <ein/train.hpp>

namespace ein::training {

/// The default model, of the sizes that the options tell of.
nn::TransformerConfig config_of(const TrainOptions& options, std::int64_t vocab_size);

/// An Error of kind `memory` where these bytes are more than this process can have: a system that
/// promises more would end the process without a word. The Error begins with `takes`, as "train: a
/// step takes".
void require_memory(const std::string& takes, double bytes);
/// The same of the model, its optimizer and the tokens of a step. `what` names the command.
void require_memory(const char* what, const nn::TransformerConfig& config,
                    const TrainOptions& options);
/// The same of a model that was described; errors as Decoder and decoder_json have.
void require_memory(const char* what, const nn::DecoderConfig& config, const TrainOptions& options);

/// What steps change. Of the options, those of the optimizer, of the loss and of micro-batches
/// count.
class Step {
 public:
  Step(const nn::DecoderConfig& config, const TrainOptions& options);

  /// Forward, backward, update, on tokens (batch_size · grad_accum, positions): the mean loss over
  /// the micro-batches and the norm of the gradient.
  std::array<Tensor, 2> operator()(const Tensor& x, const Tensor& y);
  Tensor loss(const Tensor& x, const Tensor& y) const;
  /// Whether this process is the one that writes and reports.
  bool is_first() const { return !mesh_ || mesh_->rank() == 0; }
  /// Null where this is the only process.
  const Mesh* mesh() const { return mesh_ ? &*mesh_ : nullptr; }

 private:
  TrainOptions options_;
  std::optional<Mesh> mesh_;

 public:
  nn::Decoder model;
  optim::AdamW optimizer;
  GradScaler scaler;

 private:
  /// Of the model, on the device.
  optim::ParameterGroups groups();
  /// Over the axis "data", if there is one.
  Tensor split(const Tensor& tokens) const;
  bool splits_over(const char* axis) const;
  bool scales() const { return options_.dtype == DType::f16; }
};

}  // namespace ein::training
