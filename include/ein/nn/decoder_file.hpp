// decoder.json: the config of a decoder as a file.
#pragma once

#include <string>

#include <ein/nn/decoder.hpp>

namespace ein::nn {

/// The config as JSON: an object whose keys are the names of the fields, as deep as the structs
/// are; of enumerations their names in quotes, of what is not there null. An Error of kind `value`
/// for a number that load_decoder_config refuses.
std::string decoder_json(const DecoderConfig& config);

/// Writes that, whole or not at all. An Error of kind `file` when writing fails.
void save_decoder_config(const std::string& path, const DecoderConfig& config);

/// Reads a file of decoder_json: what was written is read back equal. A key that is absent has the
/// default of its field. Errors of kind `file` name the path and the key: no JSON, a key that is no
/// field, a value of another type, a number outside its domain. Sizes are at most 2^24, layers
/// 4,096. What does not fit together, as heads that do not divide the width, is an Error of
/// Decoder's constructor.
DecoderConfig load_decoder_config(const std::string& path);

}  // namespace ein::nn
