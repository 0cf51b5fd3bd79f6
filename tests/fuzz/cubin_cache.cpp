// Any bytes as an entry of the cache of kernels and of what was tuned: nothing, unless they are
// what is written for this key.
#include "cuda/cubin_cache.hpp"

#include "fuzz/fuzz.hpp"
#include "io/xxh64.hpp"

using namespace ein;
using namespace ein::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string key = "13.0\nsm_90a\n";
  const auto check = [&key](std::string_view entry) {
    const auto cubin = gpu::entry_of(entry, key);
    if (cubin)
      require(gpu::entry_bytes(key, *cubin) == entry,
              "an entry that would be written in another way");
    return cubin.has_value();
  };
  check(bytes);
  // With a right checksum, which nobody guesses, the sizes decide.
  constexpr std::size_t header = 48, in_front = 40;
  if (size >= header) {
    std::string entry(bytes);
    std::memcpy(entry.data(), gpu::entry_bytes(key, {}).data(), 16);
    io::Xxh64 hash;
    hash.update(entry.data(), in_front);
    hash.update(entry.data() + header, size - header);
    const std::uint64_t sum = hash.digest();
    std::memcpy(entry.data() + in_front, &sum, sizeof sum);
    check(entry);
  }
  // What was written is read; a byte less is not.
  const std::size_t half = size / 2;
  const std::string written =
      gpu::entry_bytes(key, {std::string(bytes.substr(half)), std::string(bytes.substr(0, half))});
  require(check(written), "an entry that is not read back");
  require(!check(std::string_view(written).substr(0, written.size() - 1)), "a cut entry");
  return 0;
}
