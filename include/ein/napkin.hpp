// Napkin mathematics: what training a model takes, before there is one. What is an estimate is
// called one; the rest is counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ein/cost.hpp>
#include <ein/dtype.hpp>
#include <ein/shape.hpp>

namespace ein::napkin {

// --- a training run ---
//
// Errors of these functions are of kind `value`, for numbers that are not positive and finite.

/// Estimate: 6 · parameters · tokens, for forward 2 and backward 4 per parameter and token (Kaplan
/// et al., Scaling Laws for Neural Language Models, 2020).
Count training_flops(Count parameters, Count tokens);

/// The devices of a run; `peak` is of one, in FLOP/s, and 0 < mfu <= 1 the part of it that the run
/// gets.
struct Fleet {
  double devices = 1;
  double peak = 0;
  double mfu = 0.5;
};
/// Model FLOP/s of all devices.
double throughput(const Fleet& fleet);
double seconds_for(double flops, const Fleet& fleet);
double flops_in(double seconds, const Fleet& fleet);
/// Estimate: 12 · parameters · tokens / (devices · peak), which is 6 FLOPs at an MFU of 0.5.
double short_rule_seconds(double parameters, double tokens, double devices, double peak);
double dollars(double seconds, double devices, double dollars_per_device_hour);

// --- what fits ---

/// Tensors of the parameters' shape that it keeps: none, 1 (momentum, AdaGrad, RMSProp) or 2
/// (AdamW).
enum class Optimizer : std::uint8_t { sgd, momentum, adagrad, rmsprop, adamw };
int state_count(Optimizer optimizer);

/// How parameters are held while a model is trained.
struct Recipe {
  Optimizer optimizer = Optimizer::adamw;
  DType parameters = DType::f32;
  DType gradients = DType::f32;
  DType state = DType::f32;     ///< each of the optimizer's tensors
  bool has_f32_master = false;  ///< a second copy of the parameters, in f32
};
/// bf16 parameters and gradients, f32 master copy and state.
Recipe mixed_precision(Optimizer optimizer = Optimizer::adamw);
/// Parameters, gradients, master copy and state: 16 for AdamW, in f32 or mixed precision.
std::int64_t bytes_per_parameter(const Recipe& recipe);

/// Parameters that fit in the memory of all devices; an upper bound, as activations and buffers
/// take memory too.
double largest_model(double devices, double memory_bytes, double bytes_per_parameter);

// --- a Transformer ---

/// A decoder as GPT-2 is built: learned positions, norms before attention and MLP and at the end,
/// each with a weight. Functions throw an Error of kind `value` for sizes that are not positive, or
/// a width that the heads do not divide.
struct Transformer {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::int64_t heads = 0;
  std::int64_t vocab = 0;
  std::int64_t context = 0;    ///< tokens of a sequence, and learned positions
  std::int64_t mlp_width = 0;  ///< 0 for 4 · width
  bool has_biases = false;     ///< in linear layers and norms, as in GPT-2's published weights
  bool has_tied_head = true;   ///< the output layer uses the token embedding
};

struct Parameters {
  Count token_embedding, position_embedding, attention, mlp, norms, biases, head;
  Count total() const;
  /// Those that multiply activations: without positions, and without token embeddings unless they
  /// are the head.
  Count multiplying() const;
};
/// Exact; weights are counted from the operands of forward_matmuls().
Parameters parameters(const Transformer& model);
/// Estimate: 12 · width² · layers: attention and MLP alone, no embeddings, norms or biases.
Count estimated_parameters(const Transformer& model);

enum class Part : std::uint8_t { attention, mlp, head };

/// One of the model's matrix products, as the pattern and the shapes that say what it costs.
struct Matmul {
  std::string name;
  std::string pattern;
  Part part = Part::attention;
  std::vector<Shape> operands;
  bool has_weight = false;  ///< the second operand is a parameter
  std::int64_t times = 1;   ///< the layers that have it
  Cost cost;                ///< of one, by cost() of the pattern's graph
  /// Model count of all `times`.
  Count flops() const { return cost.matmul_only * Count(times); }
};
/// The matrix products of a forward pass over `batch` sequences of `context` tokens, the head
/// included. Attention is computed in full, without use of a causal mask.
std::vector<Matmul> forward_matmuls(const Transformer& model, std::int64_t batch);
/// Their FLOPs.
Count forward_flops(const Transformer& model, std::int64_t batch);

/// Model FLOPs of training on one token, forward and backward, in the conventions in use.
struct TokenFlops {
  Count derived;  ///< 3 · forward_flops() of one sequence, for each of its tokens: exact, full
                  ///< attention
  Count six_n;    ///< estimate: 6 · parameters().multiplying(), without attention
  Count
      attention;  ///< 12·L·H·Q·T of scores and values (PaLM, appendix B): every token attends to T
  Count causal_attention;  ///< 6·L·H·Q·T, the causal half: each attends to T/2 on average
  /// Estimates with attention: 6·N + 12·L·H·Q·T and 6·N + 6·L·H·Q·T.
  Count palm() const { return six_n + attention; }
  Count causal() const { return six_n + causal_attention; }
};
TokenFlops training_flops_per_token(const Transformer& model);

/// What the backward pass finds in memory.
enum class Kept : std::uint8_t {
  everything,    ///< all activations
  no_scores,     ///< attention scores are computed again (FlashAttention, selective recomputation)
  layer_inputs,  ///< everything is computed again but the input of each layer
};
struct TrainingMemory {
  Count parameters, gradients, master, optimizer;  ///< exact
  Count activations;  ///< estimate, 16-bit activations and dropout masks of a byte
  Count logits;       ///< estimate, in f32
  Count total() const;
};
/// Bytes. Activations by Korthikanti et al., Reducing Activation Recomputation in Large Transformer
/// Models (2022), without parallelism: s·b·h·(34 + 5·a·s/h) a layer with an MLP of 4·h, 34·s·b·h
/// without scores, 2·s·b·h of layer inputs; 4·s·b·v of logits.
TrainingMemory training_memory(const Transformer& model, std::int64_t batch, const Recipe& recipe,
                               Kept kept = Kept::everything);

}  // namespace ein::napkin
