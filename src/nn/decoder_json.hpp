// The text of a decoder.json, of a file or of a checkpoint.
#pragma once

#include <string>
#include <string_view>

#include <ein/nn/decoder_file.hpp>

namespace ein::nn {

/// Of any bytes; errors are of kind `file` and name `path`, as load_decoder_config has them.
DecoderConfig parse_decoder_json(std::string_view text, const std::string& path);

}  // namespace ein::nn
