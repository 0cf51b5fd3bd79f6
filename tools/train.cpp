// ein train and ein sample.
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <sstream>

#include <ein/tokenizer.hpp>
#include <ein/train.hpp>

#include "call.hpp"
#include "graph/diagnostic.hpp"
#include "io/file.hpp"
#include "numbers.hpp"
#include "report.hpp"
#include "stop_signals.hpp"
#include "subcommands.hpp"
#include "train/trained.hpp"
#include "train_model.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* train_examples = R"(Examples:
  ein train --data shakespeare.txt --out run
  ein train --data shakespeare.txt --out run --max-iters 5000 --resume
  ein train --tokens stories.u16 --tokenizer tokenizer.json --model decoder.json --out run
  ein train --data shakespeare.txt --out run --norm rms --positions rotary --kv-heads 2 --feed-forward swiglu --no-bias
  ein sample --from run --prompt 'ROMEO:' --tokens 300

TOKENS are ids that ein tokenize encode wrote. The checkpoints keep the model and the tokenizer: --resume wants neither
again. Where the model's options say nothing, it is GPT-2's with the sizes above.

OUT receives the last checkpoints, log.jsonl (a line for each step) and loss.svg. Where it has a run, --resume or
--overwrite is wanted. SIGINT (Ctrl-C) and SIGTERM end a run after the step at hand, with a checkpoint of it, from which
--resume goes on; a second one ends it at once.

Exit code: 0; 130 and 143 where SIGINT and SIGTERM ended it; 2 for a mistake in the call, a directory that has a run, and
where a loss is not finite; 1 for files, memory and the rest.)";

constexpr const char* sample_examples = R"(Examples:
  ein sample --from run --prompt 'ROMEO:' --tokens 300 --temperature 0.8 --top-k 40
  ein sample --from /models/Qwen3-0.6B --prompt 'Once upon a time' --top-p 0.95 --stop '<|im_end|>'
  ein sample --from run --perplexity text.txt

The filters act in this order: temperature, top k, top p, min p. Of a model directory of Hugging Face, what
generation_config.json says of them and of tokens that end a text counts where no option says otherwise.

Exit code: 0; 2 for a mistake in the call, such as a prompt with characters that the model does not know; 1 for files
and the rest.)";

std::string megabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, bytes >= 1e9 ? "%.2f GB" : "%.1f MB",
                bytes / (bytes >= 1e9 ? 1e9 : 1e6));
  return text;
}

/// What the device has, and whether a step fits.
std::string memory_of(const TrainBill& bill) {
  const double peak = static_cast<double>(bill.memory.peak());
  std::string text = megabytes(bill.machine_memory);
  if (bill.available_memory > 0)
    text += ", of which " + megabytes(bill.available_memory) + " are available";
  if (peak > bill.machine_memory) return text + ", so it does not fit";
  const bool is_short = bill.available_memory > 0 && peak > bill.available_memory;
  return text + (is_short ? ", so it fits only if other programs end" : ", so it fits");
}

void print_bill(const TrainBill& bill, const TrainOptions& options) {
  std::printf("parameters        %s\n", grouped(bill.parameters).c_str());
  std::printf("tokens            %s to train on, %s to validate with, %lld %s\n",
              grouped(bill.train_tokens).c_str(), grouped(bill.validation_tokens).c_str(),
              static_cast<long long>(bill.vocabulary),
              bill.tokens_are_characters ? "characters" : "in the vocabulary");
  std::printf("FLOPs per step    %s, %s of them in contractions\n",
              grouped(bill.step.model).c_str(), grouped(bill.step.matmul_only).c_str());
  std::printf("                  forward %s, backward %s, update %s\n",
              grouped(bill.parts.forward.model).c_str(), grouped(bill.parts.backward.model).c_str(),
              grouped(bill.parts.update.model).c_str());
  const auto of = [](std::size_t bytes) { return megabytes(static_cast<double>(bytes)); };
  std::printf("memory of a step  %s: parameters %s, optimizer state %s, intermediate values %s\n",
              of(bill.memory.peak()).c_str(), of(bill.parts.parameters).c_str(),
              of(bill.parts.optimizer_state).c_str(), of(bill.memory.arena).c_str());
  std::printf(
      "                  (%s without sharing; %s of activations wait for the backward pass,\n"
      "                  %s of gradients for the update)\n",
      of(bill.memory.unshared).c_str(), of(bill.parts.activations).c_str(),
      of(bill.parts.gradients).c_str());
  for (const Exchange& exchange : bill.exchanges) {
    std::string over;
    for (const std::string& axis : exchange.over) over += (over.empty() ? "" : ", ") + axis;
    std::printf("%-17s %s over %s: %lld calls, %s\n",
                &exchange == &bill.exchanges.front() ? "exchanges a step" : "",
                std::string(name(exchange.collective)).c_str(), over.c_str(),
                static_cast<long long>(exchange.calls),
                of(static_cast<std::size_t>(exchange.bytes)).c_str());
  }
  if (bill.peak_flops > 0) {
    std::printf("%-17s %s; %.0f GFLOP/s (%s), a step takes at least %.3g ms\n",
                to_string(options.device).c_str(), memory_of(bill).c_str(), bill.peak_flops / 1e9,
                bill.peak_source.c_str(),
                1e3 * bill.step.matmul_only.approximate() / bill.peak_flops);
  }
  if (!bill.note.empty()) std::printf("note              %s\n", bill.note.c_str());
  if (bill.first_step > 0)
    std::printf("resumed           at step %lld\n", static_cast<long long>(bill.first_step));
  if (options.max_iters > bill.first_step) std::printf("\n");
  std::fflush(stdout);
}

/// One line that is written over, on a terminal; a line for each evaluation.
class ProgressLine {
 public:
  explicit ProgressLine(std::int64_t steps)
      : steps_(steps), is_terminal_(isatty(STDERR_FILENO) == 1) {}
  /// Leaves a clean line for the message of an error.
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const TrainProgress& p) {
    if (p.evaluated) {
      clear();
      std::printf("step %5lld  train loss %.4f  val loss %.4f\n", static_cast<long long>(p.step),
                  p.train_loss, p.validation_loss);
      std::fflush(stdout);
    }
    if (!is_terminal_ || p.seconds == 0) return;
    pace_ = pace_ == 0 ? p.seconds : 0.95 * pace_ + 0.05 * p.seconds;
    if (p.step % 5 != 0 && p.step != steps_) return;
    constexpr int cells = 24;
    const auto full = static_cast<int>(cells * p.step / std::max<std::int64_t>(1, steps_));
    std::string bar;
    for (int i = 0; i < cells; ++i) bar += i < full ? "█" : "░";
    const auto left = static_cast<long>(pace_ * static_cast<double>(steps_ - p.step));
    std::fprintf(stderr,
                 "\r\033[K%s %lld/%lld  loss %.4f  val %.4f  lr %.2e  |g| %.2f  %.1fk tok/s  MFU "
                 "%.0f%%  %ld:%02ld left",
                 bar.c_str(), static_cast<long long>(p.step), static_cast<long long>(steps_),
                 p.loss, p.validation_loss, p.learning_rate, p.grad_norm, p.tokens_per_second / 1e3,
                 100 * p.mfu, left / 60, left % 60);
    shown_ = true;
  }
  void clear() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
    shown_ = false;
  }

 private:
  std::int64_t steps_;
  bool is_terminal_, shown_ = false;
  double pace_ = 0;
};

struct TrainCall {
  TrainOptions options;
  Numbers numbers;
  std::string dtype = "f32", device = "cpu", mesh, token_type;
  ModelWords model;
  const CLI::Option* block_size = nullptr;
};

/// How a file of `ein tokenize encode` has ids.
TokenType token_type_of(const std::string& word) {
  if (word.empty() || word == "u16") return TokenType::u16;
  if (word == "u32") return TokenType::i32;  // ids are below 2^31
  throw UsageError("--token-type: " + ein::quoted(word) + " is neither u16 nor u32");
}

/// The exit code.
int run(TrainCall& call) {
  call.numbers.read();
  TrainOptions& options = call.options;
  options.dtype = training_dtype(call.dtype);
  options.device = device_named(call.device);
  options.mesh = mesh_axes(call.mesh);
  options.token_type = token_type_of(call.token_type);
  options.model = call.model.model(options);
  // Those of a file, or of the checkpoint.
  const bool has_positions = options.resume || (options.model && options.model->vocabulary > 0);
  if (call.block_size->count() == 0 && has_positions) options.block_size = 0;
  ProgressLine line(options.max_iters);
  std::string peak_source;
  const auto begin = [&](const TrainBill& bill) {
    print_bill(bill, options);
    peak_source = bill.peak_flops > 0 ? bill.peak_source : "unknown";
  };
  wait_for_stop_signal();
  const TrainProgress last = train(
      options,
      {.begin = begin, .step = [&](const TrainProgress& p) { line.show(p); }, .stop = stop_signal});
  line.clear();
  const int exit_code = last.stopped == 0 ? 0 : 128 + last.stopped;
  if (peak_source.empty()) return exit_code;  // another process reports
  if (last.stopped != 0) {
    std::fprintf(stderr, "ein: train: %s ended the run; step %lld is saved, --resume goes on\n",
                 last.stopped == SIGINT ? "SIGINT" : "SIGTERM", static_cast<long long>(last.step));
    return exit_code;
  }
  if (last.whole_validation_loss)
    std::printf("\nval loss %.4f over all of the text to validate with\n",
                *last.whole_validation_loss);
  if (last.tokens_per_second > 0) {
    std::printf("last step: %.1f ms, %.0f tokens/s, MFU %.3g %% of the peak (%s)\n",
                1e3 * last.seconds, last.tokens_per_second, 100 * last.mfu, peak_source.c_str());
  }
  return exit_code;
}

/// What `sample` continues where no prompt is given: a new line, or the first token where the model
/// knows none.
std::string default_prompt(const SampleOptions& options) {
  const auto tokenizer = training::load_tokenizer_of(options.from, options.tokenizer);
  const std::string new_line = "\n";
  try {
    tokenizer->encode(new_line);
    return new_line;
  } catch (const Error&) {
    return tokenizer->decode(std::array{std::int32_t{0}});
  }
}

void print_note(const std::string& note) { std::fprintf(stderr, "ein: %s\n", note.c_str()); }

struct SampleCall {
  SampleOptions options;
  Numbers numbers;
  std::string device = "cpu", perplexity;
  std::vector<std::string> stop_ids;
  const CLI::Option* prompt = nullptr;
};

/// How well the model predicts the text of a file.
std::string score_of(const SampleCall& call) {
  const SampleOptions& o = call.options;
  const TextScore score = ein::score({.from = o.from,
                                      .text = io::InputFile("sample", call.perplexity).read(),
                                      .tokenizer = o.tokenizer,
                                      .device = o.device,
                                      .on_note = print_note});
  Table table({false, true});
  table.add({"tokens", grouped(score.tokens)});
  table.add({"loss", shown(score.loss)});
  table.add({"perplexity", shown(score.perplexity)});
  table.add({"bits per byte", shown(score.bits_per_byte)});
  return table.text();
}

std::string run(SampleCall& call) {
  call.numbers.read();
  SampleOptions& options = call.options;
  options.device = device_named(call.device);
  if (!call.perplexity.empty()) return score_of(call);
  for (const std::string& word : call.stop_ids)
    options.stop_ids.push_back(whole_number("--stop-id", word));
  if (call.prompt->count() == 0) options.prompt = default_prompt(options);
  options.on_note = print_note;
  sample(options, [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  });
  return "\n";
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("train", "Train a decoder on a text");
  const auto call = std::make_shared<TrainCall>();
  TrainOptions& o = call->options;
  Numbers& numbers = call->numbers;
  add_word(*command, "--data", o.data, "a text file");
  add_word(*command, "--tokens", o.tokens, "a file of ids in place of a text");
  add_word(*command, "--token-type", call->token_type, "how it has ids: u16 (default) or u32");
  add_word(*command, "--tokenizer", o.tokenizer,
           "tokenizer.json; without, the tokens of a text are its characters");
  numbers.add(*command, "--validation-fraction", o.validation_fraction,
              "of the tokens, the last ones");
  add_word(*command, "--out", o.out, "the directory for checkpoints, log and picture")->required();
  call->block_size = numbers.add(*command, "--block-size", o.block_size,
                                 "positions that a prediction may look at");
  numbers.add(*command, "--batch-size", o.batch_size, "sequences in a batch");
  std::vector<const CLI::Option*> sizes{
      numbers.add(*command, "--n-layer", o.n_layer, "blocks"),
      numbers.add(*command, "--n-head", o.n_head, "attention heads"),
      numbers.add(*command, "--n-embd", o.n_embd, "width")};
  numbers.add(*command, "--max-iters", o.max_iters, "steps");
  numbers.add(*command, "--learning-rate", o.learning_rate, "the highest");
  numbers.add(*command, "--min-lr", o.min_lr, "the last");
  numbers.add(*command, "--warmup-iters", o.warmup_iters, "steps up to the highest");
  numbers.add(*command, "--weight-decay", o.weight_decay, "of matrices");
  numbers.add(*command, "--beta1", o.beta1, "AdamW's");
  numbers.add(*command, "--beta2", o.beta2, "AdamW's");
  numbers.add(*command, "--grad-clip", o.grad_clip, "the greatest norm of the gradient; 0: any");
  sizes.push_back(numbers.add(*command, "--dropout", o.dropout, "probability"));
  numbers.add(*command, "--grad-accum", o.grad_accum, "batches to a step");
  numbers.add(*command, "--eval-interval", o.eval_interval,
              "steps between evaluations and checkpoints");
  numbers.add(*command, "--eval-iters", o.eval_iters, "batches to an evaluation");
  numbers.add(*command, "--seed", o.seed, "of weights, batches and dropout");
  add_word(*command, "--dtype", call->dtype, "of contractions: f32, bf16, f16")->default_str("f32");
  add_word(*command, "--device", call->device, "cpu, cuda, cuda:1 ...")->default_str("cpu");
  add_word(*command, "--mesh", call->mesh,
           "axes of processes that ein launch or mpirun started: data=2,model=2");
  numbers.add(*command, "--zero", o.zero,
              "split over data: 1 the optimizer's state, 2 gradients, too, 3 parameters, too");
  add_word(*command, "--init-from", o.init_from, "a checkpoint to take the weights from");
  command->add_flag("--resume", o.resume, "go on from the last checkpoint in OUT, if any");
  command->add_flag("--overwrite", o.overwrite, "remove the run that is in OUT, if any");
  sizes.push_back(
      command->add_flag("--bias,!--no-bias", o.bias,
                        "biases in linear layers and norms, as GPT-2 has them (default), or none"));
  call->model.add(*command, std::move(sizes));
  command->add_flag("--compile,!--no-compile", o.compile,
                    "one program for a step (default), or call by call");
  command->footer(train_examples);
  command->callback([call, &exit_code] { exit_code = run(*call); });
}

void add_sample(CLI::App& app, std::string& output) {
  CLI::App* command = app.add_subcommand("sample", "Write text with a trained model");
  const auto call = std::make_shared<SampleCall>();
  SampleOptions& o = call->options;
  add_word(
      *command, "--from", o.from,
      "what ein train wrote: its directory, or a checkpoint; or a model directory of Hugging Face")
      ->required();
  call->prompt =
      add_word(*command, "--prompt", o.prompt,
               "what to continue; where the model knows no new line, the first token that it knows")
          ->default_str("a new line");
  call->numbers.add(*command, "--tokens", o.tokens, "how many to write at most");
  call->numbers.add(*command, "--temperature", o.temperature,
                    "below 1: likelier ones; 0: the likeliest", "0.8");
  call->numbers.add(*command, "--top-k", o.top_k, "only among so many likeliest; 0: all", "0");
  call->numbers.add(*command, "--top-p", o.top_p,
                    "only the likeliest whose probabilities sum to this", "1");
  call->numbers.add(*command, "--min-p", o.min_p,
                    "only those at least this times as likely as the likeliest", "0");
  add_words(*command, "--stop", o.stop, "a token that ends the text; for each one again")
      ->type_name("TEXT");
  add_words(*command, "--stop-id", call->stop_ids, "the same by its id")->type_name("ID");
  call->numbers.add(*command, "--seed", o.seed, "of the draws");
  add_word(*command, "--tokenizer", o.tokenizer, "tokenizer.json in place of the model's own");
  add_word(*command, "--perplexity", call->perplexity,
           "write no text, but how well the model predicts that of this file")
      ->type_name("FILE");
  add_word(*command, "--device", call->device, "cpu, cuda, cuda:1 ...")->default_str("cpu");
  command->footer(sample_examples);
  command->callback([call, &output] { output = run(*call); });
}

}  // namespace ein::command
