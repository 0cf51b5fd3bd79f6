#include "train/run.hpp"

#include <algorithm>

#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/schedule.hpp>
#include <ein/text.hpp>
#include "api/on_all.hpp"
#include "io/file.hpp"
#include "machine/printable.hpp"
#include "train/model.hpp"

namespace ein::training {
namespace {

std::string read_text(const std::string& path) {
  const io::InputFile file("train", path);
  if (file.size() == 0) file.fail("is empty");
  return file.read();
}

/// The tokens that the options name, by `known`, a tokenizer that a checkpoint has, where there is
/// one.
Corpus read_corpus(const TrainOptions& options, std::unique_ptr<Tokenizer> known) {
  if (!options.tokenizer.empty())
    known = std::make_unique<BpeTokenizer>(load_bpe(options.tokenizer));
  if (!options.tokens.empty())
    return {std::move(known), Tokens::open(options.tokens, options.token_type)};
  if (const auto* const bpe = dynamic_cast<const BpeTokenizer*>(known.get())) {
    std::vector<std::int32_t> ids;
    encode_file(options.data, *bpe, [&](std::span<const std::int32_t> piece) {
      ids.insert(ids.end(), piece.begin(), piece.end());
    });
    return {std::move(known), Tokens(from_vector(ids))};
  }
  const std::string text = read_text(options.data);
  auto characters = std::make_unique<CharTokenizer>(text);
  const Tensor ids = from_vector(characters->encode(text));
  return {std::move(characters), Tokens(ids)};
}

/// Sizes that were given, though the model of a checkpoint has others.
void require_no_other_sizes(const TrainOptions& options, const nn::DecoderConfig& config) {
  const TrainOptions plain;
  const auto same = [](const char* what, std::int64_t given, std::int64_t otherwise,
                       std::int64_t of_model) {
    require(given == otherwise || given == of_model,
            std::string(what) + " is " + std::to_string(given) +
                ", that of the run to go on with is " + std::to_string(of_model));
  };
  same("n layer", options.n_layer, plain.n_layer, config.layers);
  same("n head", options.n_head, plain.n_head, config.attention.heads);
  same("n embd", options.n_embd, plain.n_embd, config.width);
}

bool of_characters(const Corpus& corpus) {
  return dynamic_cast<const CharTokenizer*>(corpus.tokenizer.get()) != nullptr;
}

}  // namespace

ResolvedOptions resolved(const TrainOptions& options) {
  ResolvedOptions result{options};
  const bool has_model = options.model.has_value();
  const bool wants_tokenizer =
      options.tokenizer.empty();  // characters are those of the text at hand
  if (options.resume && (!has_model || wants_tokenizer) && has_checkpoint(options.out)) {
    const Checkpoint checkpoint = load_checkpoint(options.out, {.mmap = false});
    Described described = read_description(checkpoint);
    if (!has_model && !described.sizes) {
      require_no_other_sizes(options, described.config);
      result.options.model = described.config;
    }
    if (wants_tokenizer &&
        (!options.tokens.empty() || dynamic_cast<const BpeTokenizer*>(described.tokenizer.get())))
      result.tokenizer = std::move(described.tokenizer);
  }
  if (result.options.block_size == 0)
    result.options.block_size =
        result.options.model ? result.options.model->positions : TrainOptions().block_size;
  return result;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorKind::value, "train: " + what);
}

Run::Run(ResolvedOptions& given)
    : options_(given.options),
      corpus_(read_corpus(options_, std::move(given.tokenizer))),
      split_(split(corpus_.tokens, 1 - options_.validation_fraction)),
      step_(config(), options_),
      sampler_(split_.train, options_.batch_size * options_.grad_accum, options_.block_size,
               options_.seed) {
  const TrainOptions& options = options_;
  const auto goes_on = [&] { return options.resume && has_checkpoint(options.out); };
  if (!options.init_from.empty() && !goes_on()) init();
  take_directory();
  if (goes_on())
    resume();
  else if (options.resume)
    note_ = "nothing to resume: \"" + printable_line(options.out) + "\" has no checkpoint";
}

void Run::take_directory() {
  const auto take = [&] {
    if (!is_first()) return true;
    directory_.emplace(options_.out);
    if (!options_.resume && !options_.overwrite) directory_->require_unused();
    return true;
  };
  if (step_.mesh())
    engine::on_all(*step_.mesh()->impl(), take);
  else
    take();
}

std::optional<Log> Run::begin_log() const {
  if (!is_first()) return std::nullopt;
  if (!is_resumed_ && options_.overwrite) directory_->clear();
  return Log(options_.out, first_step_);
}

int Run::largest(int said) const {
  if (!step_.mesh()) return said;
  const std::vector<int> all = engine::on_all(*step_.mesh()->impl(), [&] { return said; });
  return *std::max_element(all.begin(), all.end());
}

TrainBill Run::bill() const {
  TrainBill bill;
  bill.parameters = step_.model.parameter_count();
  bill.vocabulary = step_.model.config().vocabulary;
  bill.tokens_are_characters = of_characters(corpus_);
  bill.train_tokens = split_.train.size();
  bill.validation_tokens = split_.validation.size();
  bill.first_step = first_step_;
  bill.note = note_;
  return bill;
}

void Run::set_learning_rate(std::int64_t step) {
  const optim::CosineWithWarmup schedule{.learning_rate = options_.learning_rate,
                                         .min_learning_rate = options_.min_lr,
                                         .warmup_steps = options_.warmup_iters,
                                         .end = options_.max_iters};
  step_.optimizer.set_learning_rate(schedule(step));
}

Batch Run::evaluation_batch(bool validation, std::int64_t step, std::int64_t number) const {
  const Tokens& tokens = validation ? split_.validation : split_.train;
  const auto place =
      static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(options_.eval_iters) +
      static_cast<std::uint64_t>(number);
  return get_batch(tokens, options_.batch_size, options_.block_size,
                   options_.seed + (validation ? 1 : 2), place);
}

Batch Run::validation_blocks(std::int64_t first, std::int64_t rows) const {
  const std::int64_t length = options_.block_size, begin = first * length,
                     end = begin + rows * length;
  const Shape shape{rows, length};
  return {split_.validation.read(begin, end).reshape(shape),
          split_.validation.read(begin + 1, end + 1).reshape(shape)};
}

std::int64_t Run::validation_block_count() const {
  return (split_.validation.size() - 1) / options_.block_size;
}

void Run::save(std::int64_t step, std::uint64_t position) {
  StateDict tensors;
  add_part(tensors, "model.", step_.model.state_dict());
  add_part(tensors, "optimizer.", step_.optimizer.state_dict());
  add_part(tensors, "scaler.", step_.scaler.state_dict());
  Metadata metadata = sizes_ ? describe(*sizes_, *corpus_.tokenizer)
                             : describe(step_.model.config(), corpus_.tokenizer.get());
  const RandomState random = random_state();
  metadata["random.seed"] = std::to_string(random.seed);
  metadata["random.streams"] = std::to_string(random.streams);
  metadata["data.position"] = std::to_string(position);
  if (const Mesh* const mesh = step_.mesh())
    save_checkpoint(*mesh, options_.out, step, tensors, metadata);
  else
    save_checkpoint(options_.out, step, tensors, metadata);
}

std::int64_t Run::vocabulary() const {
  const std::int64_t of_tokenizer = corpus_.tokenizer ? corpus_.tokenizer->vocabulary_size() : 0;
  const std::int64_t of_model = options_.model ? options_.model->vocabulary : 0;
  require(of_tokenizer > 0 || of_model > 0,
          "ids alone do not say how large the vocabulary is\n  help: give a tokenizer.json, or a "
          "model with a vocabulary");
  require(of_model == 0 || of_tokenizer <= of_model,
          "the tokenizer has " + std::to_string(of_tokenizer) +
              " tokens, more than the vocabulary of the model, " + std::to_string(of_model));
  return of_model > 0 ? of_model : of_tokenizer;
}

void Run::require_ids_below(std::int64_t vocabulary) const {
  if (of_characters(corpus_)) return;
  const auto [least, most] = corpus_.tokens.range();
  // A u32 is read as an i32.
  const std::int64_t wrong = least < 0 ? least + (std::int64_t{1} << 32) : most;
  require(least >= 0 && most < vocabulary, "the tokens have the id " + std::to_string(wrong) +
                                               ", the vocabulary has " +
                                               std::to_string(vocabulary) + " tokens");
}

nn::DecoderConfig Run::config() {
  const std::string unit = of_characters(corpus_) ? " characters" : " tokens";
  const auto require_long = [&](const Tokens& part, const std::string& which) {
    require(part.size() > options_.block_size,
            "the text is too short: its " + which + ", " + std::to_string(part.size()) + unit +
                ", must be longer than the block size, " + std::to_string(options_.block_size));
  };
  require_long(split_.validation,
               options_.validation_fraction == 0.1 ? "last tenth" : "part to validate with");
  require_long(split_.train, "part to train on");
  const std::int64_t vocabulary = this->vocabulary();
  require_ids_below(vocabulary);
  nn::DecoderConfig config;
  if (options_.model) {
    config = *options_.model;
    config.vocabulary = vocabulary;
    require(options_.block_size <= config.positions,
            "the block size, " + std::to_string(options_.block_size) +
                ", is more than the positions of the model, " + std::to_string(config.positions));
    require_memory("train", config, options_);
  } else {
    sizes_ = config_of(options_, vocabulary);
    config = nn::decoder_config(*sizes_);
    require_memory("train", *sizes_, options_);
  }
  // The weights' random numbers, and dropout's, follow from the seed.
  manual_seed(options_.seed);
  return config;
}

void Run::init() {
  const Checkpoint checkpoint = load_checkpoint(options_.init_from, {.mmap = false});
  const StateDict weights = part_of(checkpoint.tensors, "model.");
  if (checkpoint.metadata.contains("tokenizer") || checkpoint.metadata.contains("model"))
    require_same(checkpoint);
  step_.model.load_state_dict(weights.empty() ? checkpoint.tensors : weights);
}

void Run::require_same(const Checkpoint& checkpoint) const {
  const Described described = read_description(checkpoint);
  require_same_model(described, step_.model.config(), sizes_, checkpoint.path);
  if (!described.tokenizer || !corpus_.tokenizer) return;
  require(described.tokenizer->save() == corpus_.tokenizer->save(),
          "\"" + printable_line(checkpoint.path) + "\" was trained on a text with other " +
              (of_characters(corpus_) ? "characters" : "tokens"));
}

void Run::resume() {
  const Checkpoint checkpoint = load_checkpoint(options_.out, {.mmap = false});
  require_same(checkpoint);
  step_.model.load_state_dict(part_of(checkpoint.tensors, "model."));
  step_.optimizer.load_state_dict(part_of(checkpoint.tensors, "optimizer."));
  step_.scaler.load_state_dict(part_of(checkpoint.tensors, "scaler."));
  set_random_state({number(checkpoint, "random.seed"), number(checkpoint, "random.streams")});
  sampler_.seek(number(checkpoint, "data.position"));
  first_step_ = checkpoint.step;
  is_resumed_ = true;
  note_ = checkpoint.note;
}

}  // namespace ein::training
