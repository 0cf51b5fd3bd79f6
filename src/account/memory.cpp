// What a decoder holds, how long it takes at least, and what fits.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <ein/error.hpp>
#include <ein/napkin.hpp>
#include <ein/plan.hpp>

#include "account/divided.hpp"
#include "account/lines.hpp"

namespace ein::accounting {
namespace {

struct Job {
  const CountedDecoder& decoder;
  const nn::DecoderConfig& config;
  const AccountOptions& options;

  Count element() const { return Count(std::uint64_t{size_of(options.dtype)}); }
  Count batch() const { return Count(options.batch); }
  Count cache_bytes(std::int64_t positions) const { return decoder.cached(positions) * element(); }
  /// AdamW, in f32 or in mixed precision.
  napkin::Recipe recipe() const {
    return options.dtype == DType::f32 ? napkin::Recipe{} : napkin::mixed_precision();
  }
};

// --- training ---

struct TrainingState {
  Count parameters, gradients, master, moments;
  Count total() const { return parameters + gradients + master + moments; }
};

TrainingState training_state(const Job& job) {
  const napkin::Recipe recipe = job.recipe();
  const Count n = job.decoder.parameters();
  const auto bytes = [&](DType dtype) { return n * Count(std::uint64_t{size_of(dtype)}); };
  return {bytes(recipe.parameters), bytes(recipe.gradients),
          recipe.has_f32_master ? bytes(DType::f32) : Count(0),
          bytes(recipe.state) * Count(napkin::state_count(recipe.optimizer))};
}

/// Estimate: bytes of a layer and token where attention keeps no scores and there is no dropout:
/// inputs and outputs of two norms, queries, keys, values, their mix, gate, up, product, in 16
/// bits; the logarithm of each head's sum and two norms in f32.
Count fused_layer(const LayerKind& kind, const nn::DecoderConfig& config) {
  const nn::AttentionConfig& a = kind.attention;
  const nn::FeedForwardConfig& f = kind.has_mixture ? config.mixture->expert : config.feed_forward;
  const std::int64_t inner =
      nn::inner_width(f, config.width) * (kind.has_mixture ? config.mixture->chosen : 1);
  return Count(2) * (Count(4 * config.width) +
                     Count((a.heads + a.key_heads) * (a.head_size + kind.value_size())) +
                     Count((f.gated ? 3 : 2) * inner)) +
         Count(4 * a.heads + 8);
}

/// Estimate of Korthikanti et al. 2022 for a layer and sequence: s·h·(34 + 5·a·s/h).
Count korthikanti_layer(const nn::DecoderConfig& config, std::int64_t context) {
  const Count s(context), h(config.width), a(config.attention.heads);
  return Count(34) * s * h + Count(5) * a * s * s;
}

void add_training(Account& memory, const Job& job) {
  const AccountOptions& o = job.options;
  const std::vector<std::string> keys = keys_of(job.decoder.kinds);
  const TrainingState state = training_state(job);
  const Activations kept = activations(job.decoder, job.config, o.batch, o.context, o.dtype);

  Account all = summed(amount("activations", "activations", 0, "B",
                              "what the compiled step keeps, in a plan for this machine"));
  Count sum = 0, largest = 0, inputs = 0;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const LayerKind& kind = job.decoder.kinds[k];
    all.add(amount(keys[k], name_of(kind), kind.count() * kept.of_layer[k], "B",
                   to_string(kept.of_layer[k]) + " each"));
    sum += kind.count() * kept.of_layer[k];
    largest = std::max(largest, kept.of_layer[k]);
    inputs +=
        kind.count() * job.batch() * Count(o.context) * Count(job.config.width) * job.element();
  }
  all.value = sum;

  Account training =
      summed(amount("training", "training", 0, "B",
                    std::to_string(o.batch) + " × " + std::to_string(o.context) + " tokens, AdamW" +
                        (o.dtype == DType::f32 ? "" : " in mixed precision")));
  training.add(amount("parameters", "parameters", state.parameters, "B"));
  training.add(amount("gradients", "gradients", state.gradients, "B"));
  Account optimizer = summed(amount("optimizer", "optimizer", state.master + state.moments, "B"));
  if (state.master != Count(0))
    optimizer.add(amount("master", "parameters in f32", state.master, "B"));
  optimizer.add(amount("moments", "two moments", state.moments, "B"));
  training.add(std::move(optimizer));
  training.add(std::move(all));
  training.add(
      amount("logits", "embeddings, head and loss", kept.beside, "B", "logits are most of it"));
  training.value = state.total() + sum + kept.beside;
  memory.add(std::move(training));

  Account others{.key = "activations", .name = "activations of the layers otherwise"};
  others.add(estimate(amount("recomputed", "layers computed again", inputs + largest, "B",
                             "inputs of layers, and one layer")));
  Count fused = 0;
  for (const LayerKind& kind : job.decoder.kinds)
    fused += kind.count() * fused_layer(kind, job.config) * job.batch() * Count(o.context);
  others.add(estimate(amount("fused", "fused, in 16 bits", fused, "B",
                             "2·(4d + (2H + 2K)·h + 3f) + 4H + 8 a layer and token")));
  if (!job.config.mixture && !job.config.feed_forward.gated)
    others.add(estimate(
        amount("korthikanti", "Korthikanti et al. 2022",
               Count(job.config.layers) * job.batch() * korthikanti_layer(job.config, o.context),
               "B", "s·b·h·(34 + 5·a·s/h) a layer: 4h inside, dropout")));
  memory.add(std::move(others));
}

// --- serving ---

void add_serving(Account& memory, const Job& job) {
  const Count weights = job.decoder.parameters() * job.element();
  const Count cache = job.batch() * job.cache_bytes(job.options.context);
  Account serving = summed(
      amount("serving", "serving", weights + cache, "B", "without the activations of a prefill"));
  serving.add(amount("parameters", "parameters", weights, "B"));
  serving.add(amount(
      "cache", "cache", cache, "B",
      std::to_string(job.options.batch) + " × " + std::to_string(job.options.context) + " tokens"));
  memory.add(std::move(serving));
}

// --- times ---

/// Lines of the least time of this work, evenly on all devices.
Account least_time(const char* key, const std::string& name, Count flops, Count bytes,
                   const std::string& note, const Job& job) {
  const Hardware& device = *job.options.device;
  Cost cost;
  cost.model = cost.matmul_only = flops;
  cost.bytes_read = bytes;
  const Roofline limits = roofline(cost, device, job.options.dtype);
  const auto devices = static_cast<double>(job.options.devices);
  Account line{.key = key, .name = name};
  const auto seconds = [&](const char* part, const char* said, double value,
                           const std::string& why) {
    line.add(
        estimate({.key = part, .name = said, .value = value / devices, .unit = "s", .note = why}));
  };
  seconds("seconds", "at least", limits.seconds, note);
  seconds("compute_seconds", "products", limits.compute_seconds, "at the promised peak");
  seconds("bandwidth_seconds", "memory", limits.bandwidth_seconds,
          to_string(bytes) + " bytes at the promised bandwidth");
  line.add({.key = "bound", .name = "bound by", .value = std::string(ein::name(limits.bound))});
  return line;
}

/// Parameters that a step of so many tokens reads: tables as rows. Experts are read that some token
/// chooses, on average if all are chosen alike.
Count touched(const CountedDecoder& decoder, const nn::DecoderConfig& config, std::int64_t tokens) {
  Count sum = decoder.last_norm + decoder.head +
              (config.tied ? decoder.tokens_table : Count(config.width) * Count(tokens));
  if (decoder.positions_table != Count(0)) sum += Count(config.width) * Count(tokens);
  for (const LayerKind& kind : decoder.kinds) {
    sum += kind.count() * (kind.active() - kind.chosen_experts);
    if (!kind.has_mixture) continue;
    if (tokens == 1) {
      sum += kind.count() * kind.chosen_experts;
      continue;
    }
    const double part =
        static_cast<double>(config.mixture->chosen) / static_cast<double>(config.mixture->experts);
    const double read = 1 - std::pow(1 - part, static_cast<double>(tokens));
    sum += kind.count() *
           Count(static_cast<std::uint64_t>(std::llround(kind.experts.approximate() * read)));
  }
  return sum;
}

Account times(const Job& job) {
  const AccountOptions& o = job.options;
  const std::string work = std::to_string(o.batch) + " × " + std::to_string(o.context) + " tokens";
  Account section{.key = "times",
                  .name = "Least times of " + std::to_string(o.devices) + " × " + o.device->name};
  const Count cache = job.batch() * job.cache_bytes(o.context);
  if (o.of_serving) {
    const std::int64_t many = o.batch * o.context;
    section.add(least_time("prefill", "prefill", job.batch() * job.decoder.causal(o.context, 1),
                           touched(job.decoder, job.config, many) * job.element() + cache, work,
                           job));
    Account line = least_time("decode", "decode of a token of each sequence",
                              job.batch() * job.decoder.decode(o.context),
                              touched(job.decoder, job.config, o.batch) * job.element() + cache,
                              "weights and cache once", job);
    const double seconds = std::get<double>(line.find("seconds")->value);
    line.add(estimate({.key = "tokens_per_second",
                       .name = "tokens a second, at most",
                       .value = static_cast<double>(o.batch) / seconds}));
    section.add(std::move(line));
  }
  if (o.of_training) {
    section.add(least_time("training", "a step of training",
                           job.batch() * Count(3) * job.decoder.causal(o.context, o.context),
                           Count(2) * training_state(job).total(),
                           work + "; what the optimizer holds is read and written once", job));
  }
  return section;
}

// --- what fits ---

Account fits(const Job& job) {
  const AccountOptions& o = job.options;
  const double memory = o.device->memory * static_cast<double>(o.devices);
  Account section{.key = "fits",
                  .name = "What fits " + std::to_string(o.devices) + " × " + o.device->name};
  section.add({.key = "memory", .name = "memory of all", .value = memory, .unit = "B"});
  const auto largest = [&](Count held, Count each) {
    const double room = memory - held.approximate();
    return room < 0 ? Count(0) : Count(static_cast<std::uint64_t>(room / each.approximate()));
  };
  const std::string at = "sequences of " + std::to_string(o.context) + " tokens";
  if (o.of_training) {
    const Activations one = activations(job.decoder, job.config, 1, o.context, o.dtype);
    Count each = one.beside;
    for (std::size_t k = 0; k < job.decoder.kinds.size(); ++k)
      each += job.decoder.kinds[k].count() * one.of_layer[k];
    section.add(estimate(amount("training_batch", "largest batch of training",
                                largest(training_state(job).total(), each), "",
                                at + "; nothing is computed again")));
  }
  if (o.of_serving) {
    const Count weights = job.decoder.parameters() * job.element();
    section.add(estimate(amount("serving_batch", "largest batch of serving",
                                largest(weights, job.cache_bytes(o.context)), "", at)));
    // The cache grows with the context until every layer has a window's.
    std::int64_t least = 0, most = std::int64_t{1} << 40;
    while (least < most) {
      const std::int64_t middle = most - (most - least) / 2;
      const Count all = weights + job.batch() * job.cache_bytes(middle);
      if (all.approximate() <= memory)
        least = middle;
      else
        most = middle - 1;
    }
    const bool is_learned = job.config.position == nn::DecoderConfig::Positions::learned;
    if (is_learned) least = std::min(least, job.config.positions);
    section.add(estimate(amount("serving_context", "longest context of serving", Count(least), "",
                                "tokens of " + std::to_string(o.batch) +
                                    " sequences, by memory alone; the model is made for " +
                                    std::to_string(job.config.positions))));
  }
  return section;
}

// --- placements ---

Account plans(const Job& job) {
  const AccountOptions& o = job.options;
  const nn::DecoderConfig& c = job.config;
  if (c.mixture)
    throw Error(ErrorKind::value,
                "account: plans are of models without experts; this one has a mixture");
  const std::int64_t inner = nn::inner_width(c.feed_forward, c.width);
  plan::Job wanted;
  wanted.model = {.layers = c.layers,
                  .width = c.width,
                  .heads = c.attention.heads,
                  .vocab = c.vocabulary,
                  .context = o.context,
                  // A gate is half as much again.
                  .mlp_width = c.feed_forward.gated ? inner + inner / 2 : inner,
                  .has_biases = c.feed_forward.bias,
                  .has_tied_head = c.tied};
  wanted.batch = o.batch;
  wanted.recipe = job.recipe();
  const std::int64_t node = o.planned % 8 == 0 ? 8 : o.planned < 8 ? o.planned : 1;
  const plan::Cluster cluster = plan::cluster_of(*o.device, o.planned, node, o.dtype);
  const plan::Plans found = plan::plans(wanted, cluster);
  Account section{.key = "plans",
                  .name = "Placements of a step of training on " + std::to_string(o.planned) +
                          " × " + o.device->name,
                  .note = "as ein plan has them, of a GPT with these sizes, " +
                          to_string(napkin::parameters(wanted.model).total()) + " parameters"};
  section.add(amount("fitting", "placements that fit", Count(found.fitting)));
  for (std::size_t i = 0; i < found.best.size(); ++i) {
    const plan::Plan& p = found.best[i];
    Account line{.key = std::to_string(i),
                 .name = "place " + std::to_string(i + 1),
                 .value = plan::to_string(p.placement)};
    line.add(
        estimate({.key = "seconds", .name = "at least", .value = p.bill.seconds(), .unit = "s"}));
    line.add(estimate({.key = "memory",
                       .name = "memory of a device",
                       .value = p.bill.memory.total(),
                       .unit = "B"}));
    line.add(estimate(
        {.key = "sent", .name = "sent by a device", .value = p.bill.bytes(), .unit = "B"}));
    line.add(estimate({.key = "mfu_bound", .name = "MFU at most", .value = p.bill.mfu}));
    section.add(std::move(line));
  }
  return section;
}

}  // namespace

void add_memory(Account& root, const CountedDecoder& decoder, const nn::DecoderConfig& config,
                const AccountOptions& options) {
  const Job job{decoder, config, options};
  Account memory{.key = "memory", .name = "Memory"};
  if (options.of_training) add_training(memory, job);
  if (options.of_serving) add_serving(memory, job);
  if (!memory.parts.empty()) root.add(std::move(memory));
  if (!options.device) return;
  root.add(times(job));
  root.add(fits(job));
  if (options.planned > 0) root.add(plans(job));
}

}  // namespace ein::accounting
