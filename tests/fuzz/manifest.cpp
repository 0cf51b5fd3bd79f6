// Any bytes as a manifest.json: either an ein::Error of kind `file`, or checkpoints whose manifest,
// written again, says the same.
#include <optional>

#include "fuzz/fuzz.hpp"
#include "io/manifest.hpp"

using namespace ein;
using namespace ein::fuzz;

namespace {

std::optional<io::Manifest> read(std::string_view text) {
  return value_or_error(ErrorKind::file, std::optional<io::Manifest>(), [&] {
    return std::optional(io::parse_manifest(text, "fuzz", "manifest"));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::optional<io::Manifest> manifest = read({reinterpret_cast<const char*>(data), size});
  if (!manifest) return 0;
  for (const io::ManifestEntry& entry : manifest->checkpoints) {
    require(entry.name.find('/') == std::string::npos && entry.step >= 0, "a file elsewhere");
    require(manifest->find(entry.name) != nullptr, "an entry that is not found");
  }
  for (const std::string& file : manifest->dropped)
    require(file.find('/') == std::string::npos, "a dropped file elsewhere");
  const std::optional<io::Manifest> again = read(io::to_json(*manifest));
  require(
      again && again->dropped == manifest->dropped && again->checkpoints == manifest->checkpoints,
      "another manifest after a round trip");
  return 0;
}
