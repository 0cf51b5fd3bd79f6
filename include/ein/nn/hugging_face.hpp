// Decoders from model directories of Hugging Face.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <ein/nn/decoder.hpp>
#include <ein/safetensors.hpp>

namespace ein::nn {

/// By what names a file calls the weights of a decoder, and which way they lie.
enum class WeightNames : std::uint8_t {
  gpt2,       ///< (in, out), queries, keys and values side by side
  gpt_neo,    ///< this and all others: (out, in)
  llama,      ///< Llama, SmolLM, Mistral, Qwen 2 and 3
  phi3,       ///< queries, keys and values side by side, and gate and up
  gemma,      ///< Gemma 2 and 3
  qwen3_moe,  ///< experts as mlp.experts.N
  mixtral,    ///< experts as block_sparse_moe.experts.N
  cs336,      ///< of the course
  none  ///< of families whose configs are read, and whose weights are not: DeepSeek-V3, GPT-OSS
};

/// A decoder that a directory describes.
struct DescribedDecoder {
  DecoderConfig config;
  WeightNames names = WeightNames::llama;
};

/// Reads `config.json` of a model directory, in the spellings of transformers 4 and 5: model_type
/// gpt2, gpt_neo, llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, gemma2, gemma3_text, gemma3,
/// phi3, gpt_oss and deepseek_v3; of the last, layers that predict more tokens are left out. A key
/// that is absent has the default of that type. Dropout is left out. Errors of kind `file` name the
/// path and the key: no JSON, another model_type, a key that is not known and says something, a
/// number outside its domain, a rule of rotary positions that is none of RotaryScaling's.
DescribedDecoder read_decoder_config(const std::string& directory);
/// The same of a file by its path.
DescribedDecoder read_decoder_config_file(const std::string& path);

/// Copies tensors by these names into a decoder, converted to its dtypes. Left alone are the
/// buffers that such files have: *.rotary_emb.inv_freq, *.masked_bias, and h.N.attn.bias of shape
/// (1, 1, n, n); and a head that is the table of tokens, where the decoder's is. An Error of kind
/// `value` that begins with `what` and lists every other name that is missing, unexpected or of
/// another shape; then nothing was copied.
void load_weights(const Decoder& decoder, const StateDict& tensors, WeightNames names,
                  const std::string& what = "load_weights");

/// The decoder of a model directory with its weights, of `model.safetensors` or of the files that
/// `model.safetensors.index.json` names. The mapping of
/// files, where they are mapped, ends with the call. Errors as above, and those of
/// load_safetensors.
std::unique_ptr<Decoder> load_decoder(const std::string& directory,
                                      SafetensorsOptions options = {});

}  // namespace ein::nn
