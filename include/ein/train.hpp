// Training a Transformer on a text, and sampling from it: what `ein train` and `ein sample` do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <ein/compile.hpp>
#include <ein/nn/transformer.hpp>
#include <ein/tokenizer.hpp>

namespace ein {

/// The names and defaults of nanoGPT's small character model; biases as GPT-2 has them.
struct TrainOptions {
  std::string data;  ///< a UTF-8 text; its first 90 % are trained on, the rest validates
  std::string out;   ///< receives checkpoints, log.jsonl, loss.svg
  std::int64_t block_size = 64, batch_size = 12;
  std::int64_t n_layer = 4, n_head = 4, n_embd = 128;
  bool bias = true;
  std::int64_t max_iters = 2000;
  double learning_rate = 1e-3, min_lr = 1e-4;
  std::int64_t warmup_iters = 100;
  double weight_decay = 0.1;  ///< of parameters with at least two axes
  double beta1 = 0.9, beta2 = 0.99;
  double grad_clip = 1;  ///< 0: none
  double dropout = 0;
  std::int64_t grad_accum = 1;  ///< micro-batches to a step
  std::int64_t eval_interval = 250, eval_iters = 20;
  DType dtype = DType::f32;  ///< of contractions: f32, bf16 or f16
  std::uint64_t seed = 1337;
  bool resume = false;    ///< goes on from the last checkpoint in `out`, if there is one
  std::string init_from;  ///< a checkpoint whose weights to begin with
  bool compile = true;
};

/// What a run costs, exactly, before its first step.
struct TrainBill {
  std::int64_t parameters = 0;
  std::int64_t vocabulary = 0, train_tokens = 0, validation_tokens = 0;
  Cost step;            ///< of one step: forward, backward and update
  MemoryPlan memory{};  ///< of one step
  double machine_memory = 0;  ///< bytes
  double peak_flops = 0;      ///< FLOP/s, measured on this machine
  std::int64_t first_step = 0;  ///< where a resumed run goes on
};

/// After each step.
struct TrainProgress {
  std::int64_t step = 0;  ///< steps made
  double loss = 0, grad_norm = 0, learning_rate = 0;
  double seconds = 0;             ///< of this step
  double tokens_per_second = 0, mfu = 0;
  bool evaluated = false;  ///< then both losses below are of this step, else of the last evaluation
  double train_loss = 0, validation_loss = 0;
};

struct TrainReport {
  std::function<void(const TrainBill&)> begin;
  std::function<void(const TrainProgress&)> step;
};

/// Trains; returns the last progress. Errors: kind value for options outside their domain, file, and those of data
/// and checkpoints.
TrainProgress train(const TrainOptions& options, const TrainReport& report);

struct SampleOptions {
  std::string from;  ///< a training directory, or a checkpoint in it
  std::string prompt = "\n";
  std::int64_t tokens = 500;
  double temperature = 0.8;  ///< 0: always the likeliest
  std::int64_t top_k = 0;    ///< only among so many likeliest; 0: among all
  std::uint64_t seed = 1337;
};

/// Continues the prompt; `write` receives the prompt and then each token's text. Errors: kind value for options outside
/// their domain and a prompt with characters that the model does not know, file.
void sample(const SampleOptions& options, const std::function<void(const std::string&)>& write);

}  // namespace ein
