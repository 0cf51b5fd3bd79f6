#include "account/conventions.hpp"

#include "account/divided.hpp"

namespace ein::accounting {
namespace {

/// What the formulas are written in, and sums over the layers of it.
struct Terms {
  Count n = 0, bare = 0;  // active parameters; without all tables
  Count no_input = 0;     // without a table of tokens that is not the head
  Count positions = 0;    // learned
  Count L = 0, d = 0, V = 0, T = 0;
  Count heads = 0;        // Σ H
  Count both = 0;         // Σ H·(h of keys + h of values)
  Count seen = 0;         // Σ H·(h of keys + h of values)·min(T, window)
  Count projections = 0;  // twice the elements of attention's matrices
  Count networks = 0;     // Σ n·d·f of what a token goes through, without routers
  Count inner = 0;        // Σ f
  bool is_plain = true;   // neither mixtures nor latent attention
  // Of the layers, which are alike where is_plain.
  std::int64_t width = 1, key_heads = 1, of_heads = 1, f = 0;
  bool is_gated = false;
};

Terms terms_of(const CountedDecoder& decoder, const nn::DecoderConfig& config,
               std::int64_t context) {
  Terms t;
  t.n = decoder.active();
  t.positions = decoder.positions_table;
  t.no_input = config.tied ? t.n : t.n - decoder.tokens_table;
  t.bare = t.n - decoder.tokens_table - decoder.positions_table - decoder.head;
  t.L = Count(config.layers);
  t.d = Count(config.width);
  t.width = config.width;
  t.V = Count(config.vocabulary);
  t.T = Count(context);
  for (const LayerKind& kind : decoder.kinds) {
    const nn::AttentionConfig& a = kind.attention;
    const Count heads = kind.count() * Count(a.heads);
    const Count both = heads * (Count(a.head_size) + Count(kind.value_size()));
    t.heads += heads;
    t.both += both;
    t.seen += both * Count(kind.seen(context));
    t.projections += kind.count() * kind.projections;
    t.is_plain = t.is_plain && !a.latent;
    const nn::FeedForwardConfig& network =
        kind.has_mixture ? config.mixture->expert : config.feed_forward;
    const Count matrices = network.gated ? 3 : 2;
    const auto add_network = [&](std::int64_t f, std::int64_t times) {
      t.networks += kind.count() * Count(times) * matrices * t.d * Count(f);
      t.inner += kind.count() * Count(times) * Count(f);
    };
    if (kind.has_mixture) {
      add_network(nn::inner_width(network, config.width), config.mixture->chosen);
      add_network(config.mixture->shared_width, 1);
      t.is_plain = false;
    } else {
      add_network(nn::inner_width(network, config.width), 1);
    }
    t.key_heads = a.key_heads;
    t.of_heads = a.heads;
    t.f = nn::inner_width(config.feed_forward, config.width);
    t.is_gated = network.gated;
  }
  return t;
}

Count narayanan(const Terms& t, int of_layer, int of_scores) {
  return Count(of_layer) * t.L * t.d * t.d + Count(of_scores) * t.L * t.d * t.T +
         Count(6) * t.d * t.V;
}

Count chinchilla_body(const Terms& t) {
  return Count(3) * (Count(4) * t.d * t.both + Count(2) * t.T * t.both + Count(3) * t.heads * t.T +
                     Count(4) * t.d * t.inner);
}

Count cookbook(const Terms& t, int passes) {
  const Count square = t.L * t.d * t.d, i = passes;
  const Count queries = i * Count(2) * square * Count(t.of_heads + 2 * t.key_heads);
  // The factor of the network is cut to an integer, as the script does.
  const Count in_network =
      divided(Count(2 * passes * (t.is_gated ? 3 : 2)) * Count(t.f), t.width).value;
  return divided(queries, t.of_heads).value + i * (Count(4) * t.L * t.T * t.d + Count(2) * square) +
         in_network * square + Count(4) * t.d + Count(2) * t.d * t.V;
}

}  // namespace

std::vector<Convention> training_conventions(const CountedDecoder& decoder,
                                             const nn::DecoderConfig& config,
                                             std::int64_t context) {
  const Terms t = terms_of(decoder, config, context);
  const Count six = 6;
  std::vector<Convention> all{
      {"6N", "6·N", "N active without tables (Kaplan et al. 2020)", six * t.bare},
      {"6N_total", "6·N, all", "N active with tables", six * t.n},
      {"kaplan", "Kaplan with context", "6·N + 6·T·ΣHh, N without tables",
       six * t.bare + Count(3) * t.T * t.both},
      {"palm", "PaLM, appendix B", "6·N + 12·T·ΣHh, N with tables", six * t.n + six * t.T * t.both},
      {"nanogpt", "nanoGPT estimate_mfu", "6·N + 12·T·ΣHh, N without positions",
       six * (t.n - t.positions) + six * t.T * t.both},
      {"torchtitan", "torchtitan", "6·N + 6·T·ΣH(h_qk + h_v), N without an untied input table",
       six * t.no_input + six * t.T * t.both},
      {"torchtitan_windows", "torchtitan since 2026-08", "the same with min(T, window) for T",
       six * t.no_input + six * t.seen},
      {"megatron", "Megatron-LM 2026", "6·(Σ(2dHh + 2dKh) + Σn·d·f + dV + T·ΣHh), without routers",
       Count(3) * (t.projections + t.T * t.both) + six * (t.networks + t.d * t.V)},
      {"deepseek_v3", "Insights into DeepSeek-V3",
       "6·N + 3·T·ΣH(h_qk + h_v), N without an untied input table",
       six * t.no_input + Count(3) * t.T * t.both}};
  if (!t.is_plain) return all;
  const std::vector<Convention> of_dense{
      {"narayanan", "Narayanan et al. 2021",
       "72·L·d²·(1 + T/6d + V/12Ld): 4d inside, one key a head", narayanan(t, 72, 12)},
      {"narayanan_recomputed", "the same, layers computed again", "96·L·d²·(1 + T/6d + V/16Ld)",
       narayanan(t, 96, 16)},
      {"deepseek_llm", "DeepSeek LLM 2024", "72·L·d² + 12·L·d·T",
       Count(72) * t.L * t.d * t.d + Count(12) * t.L * t.d * t.T},
      {"chinchilla", "Chinchilla, appendix F", "3·(4dV + Σ(8dHh + 4T·Hh + 3HT + 4df))",
       chinchilla_body(t) + Count(12) * t.d * t.V},
      {"chinchilla_body", "the same without 4dV", "3·Σ(8dHh + 4T·Hh + 3HT + 4df)",
       chinchilla_body(t)},
      {"eleutherai", "EleutherAI cookbook, 3 passes",
       "3·L·(2(1 + 2K/H)d² + 4Td + 2d²) + ⌊3·2n·f/d⌋·L·d² + 4d + 2dV", cookbook(t, 3)},
      {"eleutherai_recomputed", "the same, 4 passes", "its default: layers computed again",
       cookbook(t, 4)}};
  all.insert(all.end(), of_dense.begin(), of_dense.end());
  return all;
}

std::vector<Convention> forward_conventions(const CountedDecoder& decoder,
                                            const nn::DecoderConfig& config, std::int64_t context) {
  const Terms t = terms_of(decoder, config, context);
  const Count two = 2;
  return {
      {"2N", "2·N", "N active without tables (Kaplan et al. 2020)", two * t.bare},
      {"2N_total", "2·N, all", "N active with tables", two * t.n},
      {"kaplan", "Kaplan with context", "2·N + 2·T·ΣHh, N without tables",
       two * t.bare + t.T * t.both},
      {"palm", "a third of PaLM's", "2·N + 4·T·ΣHh, N with tables", two * t.n + two * t.T * t.both},
      {"torchtitan", "a third of torchtitan's", "2·N + 2·T·ΣH(h_qk + h_v)",
       two * t.no_input + two * t.T * t.both},
      {"megatron", "a third of Megatron-LM's", "2·(Σ(2dHh + 2dKh) + Σn·d·f + dV + T·ΣHh)",
       t.projections + t.T * t.both + two * (t.networks + t.d * t.V)}};
}

}  // namespace ein::accounting
