// Any bytes as the config.json of a decoder: either an ein::Error of kind `file`, or a config of
// which a decoder of shapes alone is made, or is refused.
#include <optional>

#include <ein/shapes_only.hpp>

#include "fuzz/fuzz.hpp"
#include "nn/config_reader.hpp"

using namespace ein;
using namespace ein::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto described =
      value_or_error(ErrorKind::file, std::optional<nn::DescribedDecoder>(),
                     [&] { return std::optional(nn::parse_decoder_config(text, "config.json")); });
  if (!described || described->config.layers > 8) return 0;
  try {
    const ShapesOnly shapes;
    const nn::Decoder decoder(described->config);
    require(decoder.parameters().size() > 1, "a decoder of one parameter");
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::value || error.kind() == ErrorKind::overflow,
            "an error of another kind");
  }
  return 0;
}
