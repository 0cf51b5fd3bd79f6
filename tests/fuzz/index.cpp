// Any bytes as the index of .safetensors files: either an ein::Error of kind `file`, or names of
// files that are in its directory.
#include <optional>

#include "fuzz/fuzz.hpp"
#include "io/safetensors_index.hpp"

using namespace ein;
using namespace ein::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto files = value_or_error(ErrorKind::file, std::optional<io::WeightMap>(), [&] {
    return std::optional(io::parse_index(text, "fuzz", "index"));
  });
  if (!files) return 0;
  for (const auto& [tensor, file] : *files)
    require(file.find('/') == std::string::npos && file[0] != '.', "a file elsewhere");
  return 0;
}
