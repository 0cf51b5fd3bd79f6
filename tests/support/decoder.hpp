// Decoder: a random model of the Transformer's kind, as data, and its training step. Programs of
// this size meet what the sizes of caches decide: groups, tiles, pieces.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <ein/dtype.hpp>
#include <ein/tensor.hpp>

namespace ein::test {

enum class Norm : std::uint8_t { none, rms, rms_by_hand, layer, layer_with_bias };
enum class Mask : std::uint8_t { none, tril, where, added, window };
enum class Feed : std::uint8_t { none, relu, gelu, gated };
enum class Checkpoint : std::uint8_t { none, layers, pairs_of_layers, attentions };

struct Decoder {
  std::uint64_t seed = 0;
  std::int64_t layers = 1, batch = 1, positions = 8, heads = 1, depth = 8;
  std::int64_t key_heads = 1;  // each is read by heads / key_heads of the queries'
  std::int64_t memory = 0;     // if not 0: keys and values are of so many rows of another tensor
  std::int64_t words = 0;      // if not 0: the loss is a cross entropy over so many
  Norm norm = Norm::none;
  bool norm_is_last = false;  // of what a layer adds, in place of what it reads
  Mask mask = Mask::none;
  Feed feed = Feed::none;
  Checkpoint checkpoint = Checkpoint::none;
  bool scales_queries = false;  // in place of scores
  bool softmax_by_hand = false;
  bool packed = false;  // queries, keys and values are of one product
  bool biases = false;
  bool residual = true;
  bool dropout = false;
  bool of_input = false;     // the inputs have a gradient, too
  bool updates = false;      // the step also changes the parameters
  bool any_length = false;   // compiled for any batch and number of positions
  DType dtype = DType::f32;  // of parameters
  bool autocast = false;     // to bf16

  std::int64_t width() const { return heads * depth; }
  std::int64_t keys() const { return memory > 0 ? memory : positions; }
};

Decoder make_decoder(std::uint64_t seed);
std::string to_string(const Decoder& decoder);

/// A decoder's parameters, and its training step. Numbers are rounded to the decoder's dtype,
/// whichever dtype the tensors have.
class DecoderModel {
 public:
  DecoderModel(const Decoder& decoder, DType dtype);

  const std::vector<Tensor>& parameters() const { return parameters_; }
  /// Gives the parameters the values that they began with.
  void restart() const;

  /// Inputs, memory, targets of a run, which has a length of its own where it may.
  std::vector<Tensor> arguments(std::uint64_t run) const;
  /// The loss and the gradients, of the parameters and of the inputs; if the decoder updates them,
  /// they change.
  std::vector<Tensor> step(const Tensor& input, const Tensor& memory, const Tensor& targets) const;

 private:
  struct NormWeights {
    Tensor weight, bias;
  };
  struct Layer {
    NormWeights attention_norm, feed_norm;
    Tensor q, k, v, qkv, q_bias, mixed, mixed_bias;
    Tensor wide, wide_bias, gate, narrow, narrow_bias;
  };

  /// Of activations: without a norm they must not grow from layer to layer, or scores become so
  /// large that their rounding decides.
  double size() const { return decoder_.norm == Norm::none ? 0.5 : 1; }
  Tensor parameter(const Shape& shape, double scale, double mean = 0);

  Tensor norm(const Tensor& x, const NormWeights& n) const;
  Tensor biased(const Tensor& x, const Tensor& bias) const;
  Tensor dropped(const Tensor& x) const;
  Tensor masked(const Tensor& scores) const;
  Tensor weights_of(const Tensor& scores) const;
  Tensor attention(const Layer& l, const Tensor& y, const Tensor& of_keys) const;
  Tensor feed(const Layer& l, const Tensor& y) const;
  Tensor layer(const Layer& l, const Tensor& x, const Tensor& memory) const;

  Decoder decoder_;
  DType dtype_;
  std::mt19937_64 random_;
  std::vector<Tensor> parameters_;
  std::vector<std::vector<double>> start_;
  std::vector<Layer> layers_;
  Tensor words_, mask_;
};

}  // namespace ein::test
