// Any bytes as a .npy file: either an ein::Error of kind `file`, or an array that is the same
// mapped and copied, and whose header, written again, says the same.
#include <optional>

#include <ein/npy.hpp>

#include "fuzz/fuzz.hpp"
#include "io/npy_header.hpp"

using namespace ein;
using namespace ein::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile file;
  file.replace(data, size);
  const auto load = [&](bool mmap) {
    return value_or_error(ErrorKind::file, std::optional<Tensor>(),
                          [&] { return std::optional(load_npy(file.path(), {.mmap = mmap})); });
  };
  const std::optional<Tensor> copied = load(false);
  {
    const std::optional<Tensor> mapped = load(true);
    require(copied.has_value() == mapped.has_value(), "mapped and copied are not refused alike");
    if (!copied) return 0;
    require(same(*mapped, *copied), "mapped and copied differ");
  }
  require(copied->nbytes() <= size, "more elements than bytes");
  const std::string header = io::write_npy_header(copied->dtype(), copied->shape());
  const io::NpyHeader again =
      io::parse_npy_header(std::string_view(header).substr(10), "load_npy", "fuzz");
  require(again.dtype == copied->dtype() && again.shape == copied->shape() && !again.swapped &&
              !again.fortran_order,
          "another header after a round trip");
  return 0;
}
