// A training run: the text, the model and where in them it stands.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <ein/checkpoint_files.hpp>
#include <ein/data.hpp>
#include <ein/tokenizer.hpp>
#include <ein/train.hpp>
#include "train/directory.hpp"
#include "train/log.hpp"
#include "train/step.hpp"

namespace ein::training {

/// Unless `holds`, an Error of kind `value` that says `what`.
void require(bool holds, const std::string& what);

/// Options with what they leave to the checkpoint that the run goes on from: the model, the block
/// size, and the tokenizer, where it is no text's.
struct ResolvedOptions {
  TrainOptions options;
  std::unique_ptr<Tokenizer> tokenizer{};  ///< null: to be made of the options
};
ResolvedOptions resolved(const TrainOptions& options);

/// The tokens of a run.
struct Corpus {
  std::unique_ptr<Tokenizer> tokenizer;  ///< null: the run has ids alone
  Tokens tokens;
};

/// Everything that a step changes, and what it is made of.
class Run {
 public:
  /// Goes on from a checkpoint or begins with given weights, if the options say so. The first
  /// process has the directory from here on. `given` must outlive the run.
  explicit Run(ResolvedOptions& given);

  nn::Decoder& model() { return step_.model; }
  std::int64_t first_step() const { return first_step_; }
  bool is_resumed() const { return is_resumed_; }
  BatchSampler sampler() const { return sampler_; }
  /// What is known before the step is compiled.
  TrainBill bill() const;

  std::array<Tensor, 2> step(const Tensor& x, const Tensor& y) { return step_(x, y); }
  Tensor loss(const Tensor& x, const Tensor& y) const { return step_.loss(x, y); }

  bool is_first() const { return step_.is_first(); }
  /// Begins the log, in the place of the run that is to be overwritten, if any. Null on all
  /// processes but the first.
  std::optional<Log> begin_log() const;
  /// The largest of what the processes say; all of them call this.
  int largest(int said) const;

  void set_learning_rate(std::int64_t step);
  double learning_rate() const { return step_.optimizer.learning_rate(); }

  /// Batches that do not depend on how many were trained on, so that a resumed run sees the same.
  Batch evaluation_batch(bool validation, std::int64_t step, std::int64_t number) const;
  /// `rows` blocks of the text to validate with from block `first` on, one behind the other.
  Batch validation_blocks(std::int64_t first, std::int64_t rows) const;
  std::int64_t validation_block_count() const;

  void save(std::int64_t step, std::uint64_t position);

 private:
  void take_directory();
  std::int64_t vocabulary() const;
  void require_ids_below(std::int64_t vocabulary) const;
  nn::DecoderConfig config();
  void init();
  void resume();
  void require_same(const Checkpoint& checkpoint) const;

  const TrainOptions& options_;
  Corpus corpus_;
  Split split_;
  std::optional<nn::TransformerConfig> sizes_{};  // of the default model
  Step step_;
  BatchSampler sampler_;
  std::optional<RunDirectory> directory_;  // of the first process
  std::int64_t first_step_ = 0;
  bool is_resumed_ = false;
  std::string note_;
};

}  // namespace ein::training
