// Training a decoder on a text, and sampling from it: what `ein train` and `ein sample` do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ein/compile.hpp>
#include <ein/data.hpp>
#include <ein/mesh.hpp>
#include <ein/nn/transformer.hpp>
#include <ein/tokenizer.hpp>

namespace ein {

/// The names and defaults of nanoGPT's small character model on a CPU.
struct TrainOptions {
  /// A text; its last part validates. Its tokens are characters of UTF-8, or those of `tokenizer`.
  std::string data;
  /// Receives checkpoints, log.jsonl, loss.svg. Where it has a run, either `resume` or `overwrite`
  /// says what becomes of that.
  std::string out;
  /// Tokens in a sequence, sequences in a batch. With `model` or `resume` a block size of 0 is the
  /// positions of the model.
  std::int64_t block_size = 64, batch_size = 12;
  std::int64_t n_layer = 4, n_head = 4, n_embd = 128;
  bool bias = true;  ///< in linear layers and norms
  std::int64_t max_iters = 2000;
  double learning_rate = 1e-3, min_lr = 1e-4;
  std::int64_t warmup_iters = 100;
  double weight_decay = 0.1;  ///< of parameters with at least two axes
  double beta1 = 0.9, beta2 = 0.99;
  double grad_clip = 1;  ///< 0: none
  double dropout = 0;
  std::int64_t grad_accum = 1;  ///< micro-batches to a step
  /// Steps between evaluations, each of which leaves a checkpoint.
  std::int64_t eval_interval = 250;
  std::int64_t eval_iters = 20;  ///< batches of an evaluation
  DType dtype = DType::f32;      ///< of contractions: f32, bf16 or f16
  Device device = cpu;
  std::uint64_t seed = 1337;
  bool resume = false;     ///< goes on from the last checkpoint in `out`, if there is one
  bool overwrite = false;  ///< removes the run in `out`, if there is one
  /// A checkpoint, its directory, or a .safetensors file with the model's names, whose weights to
  /// begin with. Linear weights are (in, out).
  std::string init_from;
  bool compile = true;
  /// Axes of a mesh of processes: "data" splits the batch, "seq" the positions, "model" the heads
  /// and inner features of every block. Empty: one process.
  std::vector<MeshAxis> mesh{};
  /// What is split over the axis "data": 0 nothing, 1 the optimizer's state, 2 gradients, too, 3
  /// parameters, too (see optim::Optimizer::shard, nn::Module::shard).
  int zero = 0;
  /// The model, in place of n_layer, n_head, n_embd, bias and dropout; with a vocabulary of 0 that
  /// of the tokenizer. Not said, a run that goes on has the model of its checkpoint, if one was
  /// said when it began.
  std::optional<nn::DecoderConfig> model{};
  /// A raw file of ids (Tokens::open) in place of `data`; it is mapped. Its vocabulary is that of
  /// `model` or else of `tokenizer`; an id outside of it is an Error.
  std::string tokens{};
  TokenType token_type = TokenType::u16;
  /// A tokenizer.json. The checkpoint keeps it: a run that goes on, and sample(), need it no more.
  std::string tokenizer{};
  double validation_fraction = 0.1;  ///< of the tokens, the last ones
};

/// What a run costs, exactly, before its first step.
struct TrainBill {
  std::int64_t parameters = 0;
  std::int64_t vocabulary = 0, train_tokens = 0, validation_tokens = 0;
  bool tokens_are_characters = true;
  Cost step;                          ///< of one step
  StepBill parts;                     ///< the same by what it is for, and its memory likewise
  MemoryPlan memory{};                ///< of one step
  std::vector<Exchange> exchanges{};  ///< of one step, by one process of a mesh
  double machine_memory = 0;          ///< of the device, for this process, bytes; 0: unknown
  double available_memory = 0;        ///< of that, what nobody uses now; 0: unknown
  double peak_flops = 0;              ///< FLOP/s; 0: unknown
  std::string peak_source;            ///< who says so: a datasheet, or a measurement
  std::int64_t first_step = 0;        ///< where a resumed run goes on
  std::string note;  ///< which damaged checkpoints a resumed run passed over, and why; or that
                     ///< there was none
};

/// After each step.
struct TrainProgress {
  std::int64_t step = 0;  ///< steps made
  double loss = 0, grad_norm = 0, learning_rate = 0;
  double seconds = 0;  ///< of this step
  double tokens_per_second = 0, mfu = 0;
  bool evaluated = false;  ///< then both losses below are of this step, else of the last evaluation
  double train_loss = 0, validation_loss = 0;
  /// Seconds from the beginning of training to the end of the last evaluation.
  double elapsed = 0;
  /// After the last step: over every block of the text to validate with.
  std::optional<double> whole_validation_loss;
  int stopped = 0;  ///< what TrainReport::stop said; 0 where the run came to its end
};

struct TrainReport {
  std::function<void(const TrainBill&)> begin;
  std::function<void(const TrainProgress&)> step;
  /// Asked before each step, on each process of a mesh. Where one says other than 0, all save what
  /// they have and end; the largest is what train() returns.
  std::function<int()> stop{};
};

/// Trains; returns the last progress. `out` has a checkpoint from the start on, so that a run
/// killed at any moment can be resumed, and ends with the same bits. One run at a time has the
/// directory. Errors: kind value for options outside their domain, or other than those of the
/// weights that are loaded, and for a directory that has a run; memory, after `begin`, for a step
/// on the CPU that takes more than this process can have; file, also where another run has the
/// directory; those of data and checkpoints.
TrainProgress train(const TrainOptions& options, const TrainReport& report);

struct SampleOptions {
  /// A training directory, a checkpoint in it, or a model directory of Hugging Face (see
  /// nn::load_decoder), with config.json, weights and tokenizer.json.
  std::string from;
  std::string prompt = "\n";
  std::int64_t tokens = 500;  ///< at most
  // What a token is drawn from, in the order in which the filters act. Not said: what the
  // directory's generation_config.json says, or the last number here.
  std::optional<double> temperature{};  ///< 0: always the likeliest; 0.8
  std::optional<std::int64_t> top_k{};  ///< only among so many likeliest; 0: among all; 0
  std::uint64_t seed = 1337;
  Device device = cpu;
  /// Called before anything is written with what is to be known of the checkpoint: which newer ones
  /// were passed over, and why; of a generation_config.json what is left out.
  std::function<void(const std::string& note)> on_note{};
  /// Only among the fewest likeliest whose probabilities sum to this, 0 < top_p <= 1 (Holtzman et
  /// al. 2020); 1
  std::optional<double> top_p{};
  /// Only tokens at least this times as likely as the likeliest (Nguyen et al. 2024); 0
  std::optional<double> min_p{};
  /// Tokens that end the text and are not written, by their texts and by their ids; so do those
  /// that generation_config.json, or else config.json, has as eos_token_id.
  std::vector<std::string> stop{};
  std::vector<std::int64_t> stop_ids{};
  std::string tokenizer{};  ///< a tokenizer.json in place of the model's own
};

/// Continues the prompt; `write` receives the prompt and then each token's text, the bytes of a
/// token, which may be a part of a character. Errors: kind value for options outside their domain,
/// a stop that is no token, a prompt with characters that the model does not know, and logits that
/// are not finite; file.
void sample(const SampleOptions& options, const std::function<void(const std::string&)>& write);

struct ScoreOptions {
  std::string from;             ///< as SampleOptions::from
  std::string text;             ///< as the tokenizer wants it
  std::int64_t block_size = 0;  ///< tokens; 0: the model's positions, at most 1024
  std::string tokenizer{};      ///< as SampleOptions::tokenizer
  Device device = cpu;
  std::function<void(const std::string& note)> on_note{};  ///< as SampleOptions::on_note
};

/// How well a model predicts a text.
struct TextScore {
  std::int64_t tokens = 0;   ///< that were predicted: all but the first
  std::int64_t bytes = 0;    ///< of the text
  double loss = 0;           ///< the mean of -log p, nats a token
  double perplexity = 0;     ///< exp(loss)
  double bits_per_byte = 0;  ///< Σ -log₂ p / bytes, which does not depend on the tokenizer
};
/// In blocks that follow each other; a token is predicted from those before it in its block.
/// Errors: kind value for a text of too few tokens and a block size beyond the model's positions;
/// those of sample().
TextScore score(const ScoreOptions& options);

}  // namespace ein
