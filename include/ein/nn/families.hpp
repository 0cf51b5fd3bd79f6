// Published decoders as values of DecoderConfig. Sizes are those of the published config.json.
#pragma once

#include <cstdint>
#include <string>

#include <ein/nn/decoder.hpp>

namespace ein::nn {

// Radford et al. 2019; Eldan and Li 2023, in GPT-Neo's form: scores that are not scaled, every
// second layer with a window.
DecoderConfig gpt2();
DecoderConfig gpt2_xl();
DecoderConfig tinystories_33m();

// Touvron et al. 2023; Grattafiori et al. 2024 (Llama 3.1); SmolLM2 of Hugging Face: RMS norms,
// rotary positions, SwiGLU.
DecoderConfig llama2_7b();
DecoderConfig llama3_8b();
DecoderConfig llama3_70b();
DecoderConfig llama3_405b();
DecoderConfig smollm2_135m();

// Jiang et al. 2023, with a window; Jiang et al. 2024, a mixture of 8 experts.
DecoderConfig mistral_7b();
DecoderConfig mixtral_8x7b();

// Qwen 2.5, with biases of queries, keys and values; Qwen 3, with norms of queries and keys; its
// mixture of 128 experts.
DecoderConfig qwen2_0_5b();
DecoderConfig qwen2_7b();
DecoderConfig qwen3_0_6b();
DecoderConfig qwen3_8b();
DecoderConfig qwen3_30b_a3b();

// Gemma Team 2024, 2025: norms on both sides, GeGLU, windows; Gemma 2 with caps of scores and
// logits, Gemma 3 with norms of queries and keys and two rotary bases.
DecoderConfig gemma2_9b();
DecoderConfig gemma3_1b();
DecoderConfig gemma3_27b();

// Abdin et al. 2024.
DecoderConfig phi3_mini();

/// DeepSeek-AI 2024: latent attention, a mixture of 256 experts in groups and one for all tokens,
/// three layers without. Without the layer that predicts one token more.
DecoderConfig deepseek_v3();

/// OpenAI 2025: sinks, windows in every second layer, a mixture of 32 experts with biases.
DecoderConfig gpt_oss_20b();

/// The model of Stanford's CS336, assignment 1.
struct CS336Sizes {
  std::int64_t vocabulary = 50257, context = 1024, width = 768, layers = 12, heads = 12;
  std::int64_t inner = 0;  ///< 0: 8/3 of the width, to the nearest multiple of 64
};
/// RMS norms before, rotary positions of neighbours, SwiGLU, a head of its own, no biases.
DecoderConfig cs336(const CS336Sizes& sizes = {});
// Its ablations, each of one switch.
DecoderConfig without_norms(DecoderConfig config);
DecoderConfig with_norms_after(DecoderConfig config);
DecoderConfig without_positions(DecoderConfig config);
/// SiLU without a gate, with 4 times as many features inside as the width.
DecoderConfig without_gate(DecoderConfig config);

// What the configs of a family have in common, with the sizes that its class in transformers has
// where a config.json says none.
DecoderConfig gpt2_form();
DecoderConfig gpt_neo_form();
DecoderConfig llama_form();
DecoderConfig mistral_form();
DecoderConfig mixtral_form();
DecoderConfig qwen2_form();
DecoderConfig qwen3_form();
DecoderConfig qwen3_moe_form();
DecoderConfig gemma2_form();
DecoderConfig gemma3_form();
DecoderConfig phi3_form();
DecoderConfig deepseek_v3_form();
DecoderConfig gpt_oss_form();

/// Gives all layers but each `every`-th, the first of which is layer every - 1, this window, and
/// `rotary`, where it is one.
void add_windows(DecoderConfig& config, std::int64_t window, std::int64_t every,
                 const std::optional<Rotary>& rotary = {});

/// One of those by its name, as "llama-3.1-8b" or "gpt2"; or what a config.json says, or the one in
/// a model directory. Errors as read_decoder_config has.
DecoderConfig decoder_config(const std::string& model);

}  // namespace ein::nn
