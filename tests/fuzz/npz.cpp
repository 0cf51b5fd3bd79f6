// Any bytes as a .npz file: either an ein::Error of kind `file`, or arrays that are the same after
// they were written and read again, of no more bytes than the file can stand for.
#include <optional>

#include <ein/npz.hpp>

#include "fuzz/fuzz.hpp"
#include "io/deflate.hpp"
#include "io/npy_header.hpp"
#include "io/zip.hpp"

using namespace ein;
using namespace ein::fuzz;

namespace {

std::optional<StateDict> load(const MemoryFile& file, const NpzOptions& options = {}) {
  return value_or_error(ErrorKind::file, std::optional<StateDict>(),
                        [&] { return std::optional(load_npz(file.path(), options)); });
}

/// What save_npz gives to the file, which cannot be replaced here.
std::string written(const StateDict& tensors) {
  std::string bytes;
  for (const auto& [name, x] : tensors) {
    const std::string header = io::write_npy_header(x.dtype(), x.shape());
    const Tensor elements = x.contiguous();
    bytes += header;
    bytes.append(static_cast<const char*>(elements.raw_data()), elements.nbytes());
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile file;
  file.replace(data, size);
  const std::optional<StateDict> all = load(file);
  if (!all) return 0;
  std::size_t bytes = 0;
  for (const auto& [name, x] : *all) {
    bytes += x.nbytes();
    const auto one = load(file, {.only = {name}});
    require(one && one->size() == 1 && same(one->at(name), x),
            "another array when it is asked for");
  }
  require(bytes <= 1033 * size, "more elements than the bytes can stand for");
  if (!io::can_deflate()) return 0;
  // Compressed and decompressed, without an archive around it.
  const std::string content = written(*all);
  std::string compressed;
  io::Deflater deflater("fuzz");
  deflater.add(content.data(), content.size(), compressed);
  deflater.finish(compressed);
  file.replace(compressed.data(), compressed.size());
  const io::InputFile input("fuzz", file.path());
  const auto back = io::inflated(std::make_unique<io::FileStream>(input), content.size());
  require(back->read(content.size()) == content, "other bytes after a round trip");
  return 0;
}
