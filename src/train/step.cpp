#include "train/step.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/named.hpp>
#include <ein/nn/decoder_file.hpp>
#include <ein/shapes_only.hpp>
#include "machine/memory_limit.hpp"

namespace ein::training {

nn::TransformerConfig config_of(const TrainOptions& options, std::int64_t vocab_size) {
  return {.vocab_size = vocab_size,
          .block_size = options.block_size,
          .n_layer = options.n_layer,
          .n_head = options.n_head,
          .n_embd = options.n_embd,
          .dropout = options.dropout,
          .bias = options.bias};
}

void require_memory(const std::string& takes, double bytes) {
  const system::MemoryLimit limit = system::memory_limit();
  if (bytes <= limit.bytes) return;
  char text[256];
  std::snprintf(text, sizeof text,
                " %.3g GB of memory, %s %.3g GB\n  help: smaller batches, shorter blocks or a "
                "smaller model take less",
                bytes / 1e9, std::string(limit.set_by).c_str(), limit.bytes / 1e9);
  throw Error(ErrorKind::memory, takes + text);
}

namespace {

double real(std::int64_t size) { return static_cast<double>(size); }

void require_memory_of(const char* what, double weights, const TrainOptions& options) {
  constexpr double kept = 4 * sizeof(float);  // weight, gradient, two moments
  const double tokens =
      real(options.batch_size) * real(options.grad_accum) * real(options.block_size);
  constexpr double of_token = 2 * sizeof(std::int64_t);  // what is read, what follows
  require_memory(std::string(what) + ": the model, its optimizer and the tokens of a step take",
                 kept * weights + of_token * tokens);
}

}  // namespace

void require_memory(const char* what, const nn::TransformerConfig& config,
                    const TrainOptions& options) {
  const double width = real(config.n_embd),
               rows = real(config.vocab_size) + real(config.block_size);
  require_memory_of(what, rows * width + real(config.n_layer) * 12 * width * width, options);
}

void require_memory(const char* what, const nn::DecoderConfig& config,
                    const TrainOptions& options) {
  nn::decoder_json(config);  // sizes are in bounds, and a checkpoint can hold them
  std::int64_t weights = 0;
  {
    const ShapesOnly shapes;
    weights = nn::Decoder(config).parameter_count();
  }
  require_memory_of(what, real(weights), options);
}

Step::Step(const nn::DecoderConfig& config, const TrainOptions& options)
    : options_(options),
      mesh_(options.mesh.empty() ? std::nullopt : std::optional<Mesh>(options.mesh)),
      model(config),
      optimizer(groups(), {.learning_rate = options.learning_rate,
                           .betas = {options.beta1, options.beta2},
                           .weight_decay = options.weight_decay}),
      scaler({.device = options.device}) {
  if (options.zero == 1 || options.zero == 2) optimizer.shard(*mesh_, "data");
}

bool Step::splits_over(const char* axis) const {
  return std::any_of(options_.mesh.begin(), options_.mesh.end(),
                     [&](const MeshAxis& known) { return known.name == axis && known.size > 1; });
}

Tensor Step::split(const Tensor& tokens) const {
  // The last blocks of an evaluation may be too few, and every process along data computes them
  // all.
  const bool by_rows = splits_over("data") && tokens.shape()[0] % mesh_->size("data") == 0;
  const std::string lies =
      std::string(by_rows ? "b@data" : "b") + (splits_over("seq") ? " s@seq" : " s");
  return by_rows || splits_over("seq") ? place(tokens, *mesh_, runtime(lies)) : tokens;
}

optim::ParameterGroups Step::groups() {
  model.to(options_.device);
  if (splits_over("model")) model.split_blocks(*mesh_, "model");
  if (splits_over("seq")) model.split_positions(*mesh_, "seq");
  if (options_.zero == 3) model.shard(*mesh_, "data");
  optim::ParameterGroup decayed, others;
  for (const Tensor& parameter : model.parameters())
    (parameter.rank() >= 2 ? decayed : others).parameters.push_back(parameter);
  others.weight_decay = 0;
  return std::vector<optim::ParameterGroup>{decayed, others};
}

std::array<Tensor, 2> Step::operator()(const Tensor& x, const Tensor& y) {
  optimizer.zero_grad();
  Tensor total = zeros({}, options_.device);
  for (std::int64_t part = 0; part < options_.grad_accum; ++part) {
    const auto rows = slice(part * options_.batch_size, (part + 1) * options_.batch_size);
    const bool whole = options_.grad_accum == 1;
    const Tensor loss =
        this->loss(whole ? x : x.at({rows}), whole ? y : y.at({rows})) / options_.grad_accum;
    (scales() ? scaler.scale(loss) : loss).backward();
    total = total + loss.detach();
  }
  const NoGrad no_grad;
  if (scales()) scaler.unscale(optimizer.parameters());
  if (options_.zero == 2) optimizer.shard_gradients();
  const Tensor norm = clip_grad_norm(optimizer.parameters(),
                                     options_.grad_clip > 0 ? options_.grad_clip : INFINITY);
  if (scales()) {
    scaler.step(optimizer);
    scaler.update();
  } else {
    optimizer.step();
  }
  return {total, norm};
}

Tensor Step::loss(const Tensor& x, const Tensor& y) const {
  const Autocast autocast(options_.dtype);
  return cross_entropy(model(split(x)), split(y), "b s [v], b s");
}

}  // namespace ein::training
