// Any bytes as the config.json of a decoder, or behind a # as a decoder.json: either an ein::Error
// of kind `file`, or a config of which a decoder of shapes alone is made, or is refused; that of a
// decoder.json is also written and read back equal.
#include <optional>

#include <ein/shapes_only.hpp>

#include "fuzz/fuzz.hpp"
#include "nn/config_reader.hpp"
#include "nn/decoder_json.hpp"

using namespace ein;
using namespace ein::fuzz;

namespace {

void build(const nn::DecoderConfig& config) {
  if (config.layers > 8) return;
  try {
    const ShapesOnly shapes;
    const nn::Decoder decoder(config);
    require(decoder.parameters().size() > 1, "a decoder of one parameter");
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::value || error.kind() == ErrorKind::overflow,
            "an error of another kind");
  }
}

void check_decoder_json(std::string_view text) {
  const auto config = value_or_error(ErrorKind::file, std::optional<nn::DecoderConfig>(), [&] {
    return std::optional(nn::parse_decoder_json(text, "decoder.json"));
  });
  if (!config) return;
  require(nn::parse_decoder_json(nn::decoder_json(*config), "decoder.json") == *config,
          "another config after a round trip");
  build(*config);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('#')) {
    check_decoder_json(text.substr(1));
    return 0;
  }
  const auto described =
      value_or_error(ErrorKind::file, std::optional<nn::DescribedDecoder>(),
                     [&] { return std::optional(nn::parse_decoder_config(text, "config.json")); });
  if (described) build(described->config);
  return 0;
}
