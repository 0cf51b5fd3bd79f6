// ein napkin: what training a model takes, before there is one.
#include <ein/napkin.hpp>

#include <memory>
#include <optional>

#include <ein/hardware.hpp>

#include "call.hpp"
#include "plan.hpp"
#include "report.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein napkin train --params 70e9 --tokens 15e12 --device h100-sxm --count 1024 --mfu 0.5
  ein napkin fit --device h100-sxm --count 8 --bytes-per-param 16
  ein napkin transformer --layers 12 --width 768 --heads 12 --vocab 50257 --context 1024
More of them: ein napkin train --help, ein napkin fit --help, ein napkin transformer --help.

Exit code: 0, or 2 for a mistake in the call; 1 for the rest.)";

DType floating_dtype_of(const std::string& word) {
  return dtype_of_word("--dtype", word, list_dtypes(is_floating));
}

Count count_of(const std::string& option, const std::string& word) {
  return Count(whole_number(option, word));
}

// --- train ---

constexpr const char* train_examples = R"(Examples:
  ein napkin train --params 70e9 --tokens 15e12 --device h100-sxm --count 1024 --mfu 0.5
  ein napkin train --params 124e6 --tokens 10e9 --device a100-sxm-80gb --count 8 --dollars-per-hour 2
  ein napkin train --params 7e9 --tokens 2e12 --peak 400e12 --count 64
  ein napkin train --layers 36 --width 4096 --heads 32 --vocab 51200 --context 2048 --batch 512 --tokens 300e9
                   --device a100-sxm-80gb --data 32 --model 4 --zero 1 --microbatch 4

The FLOPs are an estimate: 6 for each parameter and token. --mfu is what you expect; 0.5 is good. With a placement
(--data, --model, --pipe, --zero) the model's sizes stand in place of --params, and instead of an expected MFU there is
a bound: memory, bytes and the least time of a step. ein plan lists all placements.

Exit code: 0, or 2 for a mistake in the call; 1 for the rest.)";

struct TrainWords {
  std::string params, tokens, device, peak, dollars, count, mfu;
  std::string dtype = "bf16";
  bool json = false;
  // A placement.
  ModelWords model;
  ClusterWords cluster;
  std::string data, parts, pipe, zero, chunks, microbatch, batch, keep = "all";
  std::string optimizer = "adamw";
  bool is_placed() const {
    return !(data.empty() && parts.empty() && pipe.empty() && zero.empty());
  }
};

/// What so many seconds of so many devices cost, if the words say a price.
std::optional<double> dollars_of(const TrainWords& words, double seconds, double devices) {
  if (words.dollars.empty()) return std::nullopt;
  return napkin::dollars(seconds, devices, positive_number("--dollars-per-hour", words.dollars));
}

std::string placed_train(const TrainWords& words, const Hardware& device, DType dtype) {
  if (!words.params.empty())
    throw UsageError(
        "with a placement the parameters are counted: --layers ... instead of --params");
  if (!words.mfu.empty())
    throw UsageError("with a placement the MFU's bound is computed: leave --mfu out");
  if (words.batch.empty()) throw UsageError("with a placement --batch is required");
  const auto number = [](const char* option, const std::string& word) {
    return word.empty() ? std::int64_t{1} : whole_number(option, word);
  };
  plan::Job job;
  job.model = model_of(words.model);
  job.batch = whole_number("--batch", words.batch);
  job.recipe = recipe_of(words.optimizer, true);
  plan::Placement placement;
  placement.data = number("--data", words.data);
  placement.model = number("--model", words.parts);
  placement.pipe = number("--pipe", words.pipe);
  if (words.zero.size() > 1 || words.zero > "3" || (!words.zero.empty() && words.zero < "0"))
    throw UsageError("--zero: '" + words.zero + "' is none of 0, 1, 2, 3");
  if (!words.zero.empty()) placement.zero = words.zero[0] - '0';
  placement.microbatch = number("--microbatch", words.microbatch);
  placement.chunks = number("--chunks", words.chunks);
  placement.kept = kept_of(words.keep);
  const std::int64_t devices =
      words.count.empty() ? plan::devices_of(placement) : whole_number("--count", words.count);
  plan::check(job, placement, devices);
  const plan::Cluster cluster = cluster_of(device, devices, dtype, words.cluster);
  const plan::Bill bill = plan::bill(job, placement, cluster);
  const double tokens = count_of("--tokens", words.tokens).approximate();
  const double step = static_cast<double>(job.batch) * static_cast<double>(job.model.context);
  const double seconds = tokens / step * bill.seconds();
  const auto dollars = dollars_of(words, seconds, static_cast<double>(devices));
  const Count parameters = napkin::parameters(job.model).total();
  if (words.json) {
    Json json;
    json.add("parameters", parameters);
    json.add("tokens", tokens);
    json.add("devices", Count(devices));
    json.add("device", device.name);
    add_bill(json, job, placement, cluster);
    json.add("run.seconds", seconds);
    if (dollars) json.add("run.dollars", *dollars);
    return json.text();
  }
  Table table({false, false, false});
  table.add({"parameters", grouped(parameters)});
  table.add({"run", "at least " + duration(seconds),
             shown(tokens / step) + " steps of " + shown(step) + " tokens"});
  if (dollars)
    table.add({"dollars", "at least " + shown(*dollars),
               "at " + words.dollars + " for a device and hour"});
  return table.text() + "\n" + bill_text(job, placement, cluster);
}

std::string train(const TrainWords& words) {
  if (!words.is_placed() && words.params.empty()) throw UsageError("--params is required");
  const Count parameters = words.params.empty() ? Count() : count_of("--params", words.params);
  const Count tokens = count_of("--tokens", words.tokens);
  const DType dtype = floating_dtype_of(words.dtype);
  Hardware device;
  device.name = device.source = "given";
  if (!words.device.empty()) device = hardware_named(words.device);
  if (!words.peak.empty()) {
    device.set_peak(dtype, usual_units(dtype), positive_number("--peak", words.peak));
    if (!words.device.empty()) device.source = "--peak";
  } else if (words.device.empty()) {
    throw UsageError("train needs --device or --peak");
  }
  const std::optional<double> peak = device.peak(dtype);
  if (!peak)
    throw UsageError(device.name + " promises no peak for " + std::string(name(dtype)) +
                     "; give --peak");
  if (words.is_placed()) return placed_train(words, device, dtype);
  const std::int64_t devices = words.count.empty() ? 1 : whole_number("--count", words.count);
  const napkin::Fleet fleet{static_cast<double>(devices), *peak,
                            words.mfu.empty() ? 0.5 : positive_number("--mfu", words.mfu)};
  const Count flops = napkin::training_flops(parameters, tokens);
  const double seconds = napkin::seconds_for(flops.approximate(), fleet);
  const double short_rule = napkin::short_rule_seconds(
      parameters.approximate(), tokens.approximate(), fleet.devices, fleet.peak);
  const auto dollars = dollars_of(words, seconds, fleet.devices);
  if (words.json) {
    Json json;
    json.add("parameters", parameters);
    json.add("tokens", tokens);
    json.add("devices", Count(devices));
    json.add("device", device.name);
    json.add("device.peak", *peak);
    json.add("device.source", device.source);
    json.add("dtype", name(dtype));
    json.add("mfu", fleet.mfu);
    json.add("flops", flops);
    json.add("flops_per_day", napkin::flops_in(86400, fleet));
    json.add("seconds", seconds);
    json.add("days", seconds / 86400);
    json.add("short_rule.days", short_rule / 86400);
    json.add("device_hours", seconds / 3600 * fleet.devices);
    if (dollars) json.add("dollars", *dollars);
    return json.text();
  }
  Table table({false, false, false});
  table.add(
      {"training", shown(flops.approximate()) + " FLOPs", "estimate: 6 · parameters · tokens"});
  table.add(
      {"devices", std::to_string(devices) + " × " + device.name,
       with_prefix(*peak, "FLOP/s ") + std::string(name(dtype)) + " each (" + device.source + ")"});
  table.add({"per day", shown(napkin::flops_in(86400, fleet)) + " FLOPs",
             "at an MFU of " + shown(fleet.mfu)});
  table.add({"time", shown(seconds / 86400) + " days", shown(seconds) + " s"});
  table.add({"short rule", shown(short_rule / 86400) + " days",
             "12·P·D / (N·F), which is an MFU of 0.5"});
  table.add({"device hours", shown(seconds / 3600 * fleet.devices)});
  if (dollars)
    table.add({"dollars", shown(*dollars), "at " + words.dollars + " for a device and hour"});
  return table.text();
}

// --- fit ---

constexpr const char* fit_examples = R"(Examples:
  ein napkin fit --device h100-sxm --count 8 --bytes-per-param 16
  ein napkin fit --device a100-40gb --optimizer momentum
  ein napkin fit --memory 24e9 --optimizer adamw --mixed

An upper bound: activations and buffers take memory as well. Without --bytes-per-param it is counted from
the optimizer, everything in f32; --mixed: parameters and gradients in bf16, a master copy in f32.

Exit code: 0, or 2 for a mistake in the call; 1 for the rest.)";

struct FitWords {
  std::string device, memory, bytes;
  std::string count = "1", optimizer = "adamw";
  bool mixed = false;
  bool json = false;
};

std::string fit(const FitWords& words) {
  const napkin::Recipe recipe = recipe_of(words.optimizer, words.mixed);
  const std::int64_t devices = whole_number("--count", words.count);
  if (words.device.empty() == words.memory.empty())
    throw UsageError("fit needs one of --device and --memory");
  double memory = 0;
  std::string device = "given";
  if (words.device.empty()) {
    memory = positive_number("--memory", words.memory);
  } else {
    const Hardware hardware = hardware_named(words.device);
    memory = hardware.memory;
    device = hardware.name;
  }
  const double bytes = words.bytes.empty()
                           ? static_cast<double>(napkin::bytes_per_parameter(recipe))
                           : positive_number("--bytes-per-param", words.bytes);
  const double parameters = napkin::largest_model(static_cast<double>(devices), memory, bytes);
  if (words.json) {
    Json json;
    json.add("device", device);
    json.add("devices", Count(devices));
    json.add("memory", memory * static_cast<double>(devices));
    json.add("bytes_per_parameter", bytes);
    json.add("parameters", parameters);
    return json.text();
  }
  Table table({false, false, false});
  table.add({"memory", with_prefix(memory * static_cast<double>(devices), "B"),
             std::to_string(devices) + " × " + with_prefix(memory, "B") + " (" + device + ")"});
  table.add({"each parameter", shown(bytes) + " bytes",
             words.bytes.empty() ? words.optimizer + (words.mixed ? ", mixed precision" : ", f32")
                                 : "given"});
  table.add({"largest model", shown(parameters) + " parameters",
             "upper bound: no room left for activations"});
  return table.text();
}

// --- transformer ---

constexpr const char* transformer_examples = R"(Examples:
  ein napkin transformer --layers 12 --width 768 --heads 12 --vocab 50257 --context 1024
  ein napkin transformer --layers 12 --width 768 --heads 12 --vocab 50257 --context 1024 --bias
                                   as GPT-2's weights are published
  ein napkin transformer --layers 96 --width 12288 --heads 96 --vocab 50257 --context 2048 --batch 4 --mixed

Parameters and the FLOPs of the matrix products are exact, from the patterns that the model is made of; what is an
estimate says so. Attention is counted in full, without use of a causal mask, where nothing else is said.

Exit code: 0, or 2 for a mistake in the call; 1 for the rest.)";

struct TransformerWords {
  ModelWords model;
  std::string batch = "1", optimizer = "adamw";
  bool mixed = false, json = false;
};

std::string transformer_json(const napkin::Transformer& model, std::int64_t batch,
                             const napkin::Recipe& recipe) {
  const napkin::Parameters p = napkin::parameters(model);
  const napkin::TokenFlops flops = napkin::training_flops_per_token(model);
  Json json;
  json.add("parameters", p.total());
  json.add("parameters.token_embedding", p.token_embedding);
  json.add("parameters.position_embedding", p.position_embedding);
  json.add("parameters.attention", p.attention);
  json.add("parameters.mlp", p.mlp);
  json.add("parameters.norms", p.norms);
  json.add("parameters.biases", p.biases);
  json.add("parameters.head", p.head);
  json.add("parameters.estimate", napkin::estimated_parameters(model));
  json.add("batch", Count(batch));
  json.add("flops.forward", napkin::forward_flops(model, batch));
  json.add("flops.forward_per_sequence", napkin::forward_flops(model, 1));
  for (const napkin::Matmul& product : napkin::forward_matmuls(model, batch)) {
    json.add("flops.forward." + product.name, product.flops());
  }
  json.add("flops.training_per_token", flops.derived);
  json.add("flops.training_per_token.6n", flops.six_n);
  json.add("flops.training_per_token.palm", flops.palm());
  json.add("flops.training_per_token.causal", flops.causal());
  const napkin::TrainingMemory memory = napkin::training_memory(model, batch, recipe);
  json.add("memory.parameters", memory.parameters);
  json.add("memory.gradients", memory.gradients);
  json.add("memory.master", memory.master);
  json.add("memory.optimizer", memory.optimizer);
  json.add("memory.activations", memory.activations);
  json.add("memory.activations_without_scores",
           napkin::training_memory(model, batch, recipe, napkin::Kept::no_scores).activations);
  json.add("memory.activations_of_layer_inputs",
           napkin::training_memory(model, batch, recipe, napkin::Kept::layer_inputs).activations);
  json.add("memory.logits", memory.logits);
  return json.text();
}

std::string transformer_text(const napkin::Transformer& model, std::int64_t batch,
                             const napkin::Recipe& recipe) {
  const napkin::Parameters p = napkin::parameters(model);
  const napkin::TokenFlops flops = napkin::training_flops_per_token(model);
  Table table({false, true, false});
  const auto add = [&table](const std::string& label, Count count, const std::string& note = "") {
    table.add({label, grouped(count), note});
  };
  add("parameters", p.total());
  add("  token embedding", p.token_embedding, model.has_tied_head ? "and head" : "");
  add("  position embedding", p.position_embedding);
  add("  attention", p.attention);
  add("  MLP", p.mlp);
  add("  norms", p.norms);
  add("  biases", p.biases);
  if (!model.has_tied_head) add("  head", p.head);
  add("  estimate", napkin::estimated_parameters(model),
      "12 · width² · layers: no embeddings, norms, biases");
  table.add({""});
  add("forward FLOPs", napkin::forward_flops(model, batch),
      "matrix products of " + std::to_string(batch) + " × " + std::to_string(model.context) +
          " tokens");
  for (const napkin::Matmul& product : napkin::forward_matmuls(model, batch)) {
    add("  " + product.name, product.flops(),
        product.pattern + "  × " + std::to_string(product.times));
  }
  table.add({""});
  add("training FLOPs per token", flops.derived, "3 · forward: attention in full");
  add("  6·N", flops.six_n, "estimate: parameters without positions, no attention");
  add("  6·N + 12·L·H·Q·T", flops.palm(), "estimate, attention in full (PaLM, appendix B)");
  add("  6·N + 6·L·H·Q·T", flops.causal(), "estimate, causal half of attention");
  table.add({""});
  const napkin::TrainingMemory memory = napkin::training_memory(model, batch, recipe);
  add("training bytes", memory.total(), with_prefix(memory.total().approximate(), "B"));
  add("  parameters", memory.parameters);
  add("  gradients", memory.gradients);
  add("  master copy", memory.master);
  add("  optimizer", memory.optimizer);
  add("  activations", memory.activations,
      "estimate: s·b·h·(34 + 5·a·s/h) a layer, 16-bit (Korthikanti et al. 2022)");
  add("  logits", memory.logits, "estimate: f32");
  table.add({"activations instead"});
  add("  without scores",
      napkin::training_memory(model, batch, recipe, napkin::Kept::no_scores).activations,
      "estimate: attention scores computed again");
  add("  layer inputs",
      napkin::training_memory(model, batch, recipe, napkin::Kept::layer_inputs).activations,
      "estimate: everything computed again");
  return table.text();
}

std::string transformer(const TransformerWords& words) {
  const napkin::Transformer model = model_of(words.model);
  const std::int64_t batch = whole_number("--batch", words.batch);
  const napkin::Recipe recipe = recipe_of(words.optimizer, words.mixed);
  return words.json ? transformer_json(model, batch, recipe)
                    : transformer_text(model, batch, recipe);
}

// --- the command ---

void add_device(CLI::App& command, std::string& device, std::string& count) {
  add_word(command, "--device", device, "h100-sxm, a100-40gb, t4, cpu ...")->type_name("DEVICE");
  add_word(command, "--count", count, "how many of them; 1 without")->type_name("N");
}

void add_train_estimate(CLI::App& napkin, std::string& output) {
  CLI::App* command = napkin.add_subcommand("train", "Time and price of a training run");
  const auto words = std::make_shared<TrainWords>();
  add_word(*command, "--params", words->params, "the model's parameters")->type_name("N");
  add_word(*command, "--tokens", words->tokens, "the tokens it is trained on")
      ->type_name("N")
      ->required();
  add_device(*command, words->device, words->count);
  add_word(*command, "--mfu", words->mfu, "the part of the peak that the run gets; 0.5 without")
      ->type_name("PART");
  add_word(*command, "--dtype", words->dtype, "what it computes in; bf16 without")
      ->type_name("DTYPE");
  add_word(*command, "--peak", words->peak, "a device's FLOP/s, instead of the table's")
      ->type_name("FLOPS");
  add_word(*command, "--dollars-per-hour", words->dollars, "the price of a device")->type_name("X");
  add_word(*command, "--data", words->data, "placement: parts of the batch")->type_name("N");
  add_word(*command, "--model", words->parts, "placement: parts of heads and inner features")
      ->type_name("N");
  add_word(*command, "--pipe", words->pipe, "placement: stages of layers")->type_name("N");
  add_word(*command, "--zero", words->zero,
           "what is split over data: 1 optimizer state, 2 gradients too, 3 parameters too")
      ->type_name("0..3");
  add_word(*command, "--microbatch", words->microbatch, "sequences at a time; 1 without")
      ->type_name("N");
  add_word(*command, "--chunks", words->chunks, "of a stage, interleaved; 1 without")
      ->type_name("N");
  add_word(*command, "--batch", words->batch, "sequences of a step, over all devices")
      ->type_name("N");
  add_word(*command, "--keep", words->keep,
           "activations: all, no-scores or inputs of layers; the others are computed again")
      ->type_name("WHAT");
  add_word(*command, "--optimizer", words->optimizer, "sgd, momentum, adagrad, rmsprop or adamw")
      ->type_name("NAME");
  add_cluster(*command, words->cluster);
  add_model(*command, words->model, false);
  command->add_flag("--json", words->json, "print one JSON object");
  command->footer(train_examples);
  command->callback([words, &output] { output = train(*words); });
}

void add_fit(CLI::App& napkin, std::string& output) {
  CLI::App* command = napkin.add_subcommand("fit", "The largest model that devices can train");
  const auto words = std::make_shared<FitWords>();
  add_device(*command, words->device, words->count);
  add_word(*command, "--memory", words->memory, "a device's memory, instead of --device")
      ->type_name("BYTES");
  add_word(*command, "--bytes-per-param", words->bytes, "parameter, gradient and states")
      ->type_name("BYTES");
  add_word(*command, "--optimizer", words->optimizer, "sgd, momentum, adagrad, rmsprop or adamw")
      ->type_name("NAME");
  command->add_flag("--mixed", words->mixed, "mixed precision: bf16 with an f32 master copy");
  command->add_flag("--json", words->json, "print one JSON object");
  command->footer(fit_examples);
  command->callback([words, &output] { output = fit(*words); });
}

void add_transformer(CLI::App& napkin, std::string& output) {
  CLI::App* command =
      napkin.add_subcommand("transformer", "Parameters, FLOPs and memory of a Transformer");
  const auto words = std::make_shared<TransformerWords>();
  add_model(*command, words->model, true);
  add_word(*command, "--batch", words->batch, "sequences at once; 1 without")->type_name("N");
  add_word(*command, "--optimizer", words->optimizer, "sgd, momentum, adagrad, rmsprop or adamw")
      ->type_name("NAME");
  command->add_flag("--mixed", words->mixed, "mixed precision: bf16 with an f32 master copy");
  command->add_flag("--json", words->json, "print one JSON object");
  command->footer(transformer_examples);
  command->callback([words, &output] { output = transformer(*words); });
}

}  // namespace

void add_napkin(CLI::App& app, std::string& output) {
  CLI::App* command =
      app.add_subcommand("napkin", "What training a model takes: time, memory, FLOPs");
  command->require_subcommand(1);
  add_train_estimate(*command, output);
  add_fit(*command, output);
  add_transformer(*command, output);
  command->footer(examples);
}

}  // namespace ein::command
