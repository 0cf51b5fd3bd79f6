#include <ein/account.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <ein/error.hpp>

#include "account/conventions.hpp"
#include "account/divided.hpp"
#include "account/layers.hpp"
#include "account/lines.hpp"
#include "graph/domain.hpp"

namespace ein {

using namespace accounting;

namespace {

// --- parameters ---

Account parameters(const CountedDecoder& decoder, const nn::DecoderConfig& config) {
  const std::vector<std::string> keys = keys_of(decoder.kinds);
  Account total = summed(amount("total", "total", decoder.parameters()));
  const auto add_module = [](Account& line, const char* key, const char* name, Count count) {
    if (count != Count(0)) line.add(amount(key, name, count));
  };
  add_module(total, "tokens", config.tied ? "table of tokens, and head" : "table of tokens",
             decoder.tokens_table);
  add_module(total, "positions", "table of positions", decoder.positions_table);
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const LayerKind& kind = decoder.kinds[k];
    const Count n = kind.count();
    Account layers = summed(amount(keys[k], name_of(kind), n * kind.parameters()));
    add_module(layers, "attention", "attention", n * kind.attention_parameters);
    add_module(layers, "feed_forward", kind.has_mixture ? "expert of all tokens" : "feed-forward",
               n * kind.feed_forward);
    add_module(layers, "router", "router", n * kind.router);
    add_module(layers, "experts", "experts", n * kind.experts);
    add_module(layers, "norms", "norms", n * kind.norms);
    total.add(std::move(layers));
  }
  add_module(total, "last_norm", "last norm", decoder.last_norm);
  add_module(total, "head", "head", decoder.head);

  const Count active = decoder.active();
  Account section{.key = "parameters", .name = "Parameters"};
  section.add(std::move(total));
  section.add(amount("active", "active", active, "",
                     config.mixture ? "for a token: the chosen experts alone" : "all of them"));
  section.add(
      amount("active_without_input_tables", "active without input tables",
             active - decoder.positions_table - (config.tied ? Count(0) : decoder.tokens_table), "",
             "without positions, and tokens unless they are the head"));
  section.add(
      amount("without_tables", "without any table",
             decoder.parameters() - decoder.tokens_table - decoder.positions_table - decoder.head));
  return section;
}

// --- cache ---

void add_cache(Account& root, const CountedDecoder& decoder, const nn::DecoderConfig& config,
               const AccountOptions& options) {
  const std::vector<std::string> keys = keys_of(decoder.kinds);
  const std::vector<Count> elements = cache_elements(decoder, config, options.context);
  const Count size = Count(std::uint64_t{size_of(options.dtype)});
  Account token =
      summed(amount("kv_bytes_per_token", "Cache of a token", 0, "B", "all layers hold it"));
  Account all = summed(amount("kv_bytes", "Cache of a sequence", 0, "B",
                              std::to_string(options.context) + " tokens"));
  Count of_token = 0, of_all = 0;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const LayerKind& kind = decoder.kinds[k];
    const Count one = Count(kind.cached) * size, whole = elements[k] * size;
    token.add(amount(keys[k], name_of(kind), kind.count() * one, "B", to_string(one) + " each"));
    of_token += kind.count() * one;
    all.add(amount(keys[k], name_of(kind), kind.count() * whole, "B",
                   std::to_string(kind.seen(options.context)) + " tokens each"));
    of_all += kind.count() * whole;
  }
  token.value = of_token;
  all.value = of_all;
  root.add(std::move(token));
  root.add(std::move(all));
}

// --- FLOPs ---

/// Sums of products of a token by module, `times` passes; `of` gives those of attention's matrices
/// and of its positions in a layer of a kind.
struct OfAttention {
  Count projections, positions;
};
template <class Of>
Account products(std::string name, std::string note, const CountedDecoder& decoder, Count times,
                 const Of& of) {
  const std::vector<std::string> keys = keys_of(decoder.kinds);
  Account line = summed(amount("counted", std::move(name), 0, "FLOP", std::move(note)));
  Count total = 0;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const LayerKind& kind = decoder.kinds[k];
    const Count n = times * kind.count();
    const OfAttention attention = of(kind);
    const Count whole = n * (attention.projections + attention.positions + kind.network);
    Account layers = summed(amount(keys[k], name_of(kind), whole, "FLOP"));
    layers.add(amount("projections", "projections", n * attention.projections, "FLOP"));
    layers.add(amount("attention", "attention", n * attention.positions, "FLOP"));
    layers.add(amount("network", kind.has_mixture ? "router and experts" : "feed-forward",
                      n * kind.network, "FLOP"));
    total += whole;
    line.add(std::move(layers));
  }
  const Count head = times * decoder.head_products;
  line.add(amount("head", "head", head, "FLOP"));
  line.value = total + head;
  return line;
}

/// The mean of so many; a count where it is one.
Account::Value mean_of(Count sum, std::int64_t of) {
  const Quotient mean = divided(sum, of);
  if (mean.rest == 0) return mean.value;
  return sum.approximate() / static_cast<double>(of);
}

void add_conventions(Account& section, const std::vector<Convention>& conventions) {
  for (const Convention& c : conventions)
    section.add(estimate(amount(c.key, c.name, c.flops, "FLOP", c.formula)));
}

Account flops(const CountedDecoder& decoder, const nn::DecoderConfig& config,
              std::int64_t context) {
  const auto full = [&](const LayerKind& kind) {
    return OfAttention{kind.projections, kind.of_a_position * Count(context)};
  };
  const auto last = [&](const LayerKind& kind) {
    return OfAttention{kind.decode_projections,
                       kind.decode_of_a_position * Count(kind.seen(context))};
  };
  const Count causal = decoder.causal(context, context);
  Account section{.key = "flops_per_token", .name = "FLOPs of a token"};

  Account prefill{.key = "prefill", .name = "prefill of " + std::to_string(context) + " tokens"};
  prefill.add(
      products("counted", "products of the graph, attention in full", decoder, Count(1), full));
  prefill.add({.key = "causal",
               .name = "causal",
               .value = mean_of(causal, context),
               .unit = "FLOP",
               .note = "without what the mask hides"});
  add_conventions(prefill, forward_conventions(decoder, config, context));
  section.add(std::move(prefill));

  Account decode{.key = "decode",
                 .name = "decode of the last of " + std::to_string(context) + " tokens"};
  decode.add(products("counted", "products of the graph, with the cache", decoder, Count(1), last));
  add_conventions(decode, forward_conventions(decoder, config, context));
  section.add(std::move(decode));

  Account training{.key = "training", .name = "training on " + std::to_string(context) + " tokens"};
  training.add(
      products("counted", "forward and backward, attention in full", decoder, Count(3), full));
  training.add({.key = "causal",
                .name = "causal",
                .value = mean_of(Count(3) * causal, context),
                .unit = "FLOP",
                .note = "without what the mask hides"});
  add_conventions(training, training_conventions(decoder, config, context));
  section.add(std::move(training));
  return section;
}

Account flops_of_sequence(const CountedDecoder& decoder, std::int64_t context) {
  Account section{.key = "flops",
                  .name = "FLOPs of a sequence of " + std::to_string(context) + " tokens"};
  section.add(
      amount("prefill", "prefill", decoder.causal(context, 1), "FLOP", "causal; the head once"));
  section.add(amount("training", "training", Count(3) * decoder.causal(context, context), "FLOP",
                     "causal; the head on all tokens"));
  return section;
}

/// From 1 to 2^40, so that sums stay counts.
std::int64_t require_size(const char* what, std::int64_t size) {
  require_at_least(1, "account", what, size);
  if (size <= std::int64_t{1} << 40) return size;
  throw Error(ErrorKind::value, std::string("account: ") + what + " is " + std::to_string(size) +
                                    ", at most 2^40 is wanted");
}

std::int64_t context_of(const nn::DecoderConfig& config, std::int64_t wanted) {
  const std::int64_t context = wanted == 0 ? std::min<std::int64_t>(config.positions, 8192)
                                           : require_size("context", wanted);
  if (config.position == nn::DecoderConfig::Positions::learned && context > config.positions) {
    throw Error(ErrorKind::value, "account: a context of " + std::to_string(context) +
                                      " positions is more than the " +
                                      std::to_string(config.positions) + " that are learned");
  }
  return context;
}

}  // namespace

Account account(const nn::DecoderConfig& config, const AccountOptions& given) {
  AccountOptions options = given;
  const CountedDecoder decoder = counted(config);
  options.context = context_of(config, given.context);
  require_size("batch", options.batch);
  require_size("devices", options.devices);
  Account root;
  root.add(parameters(decoder, config));
  add_cache(root, decoder, config, options);
  root.add(flops(decoder, config, options.context));
  root.add(flops_of_sequence(decoder, options.context));
  add_memory(root, decoder, config, options);
  return root;
}

}  // namespace ein
