// Any bytes as a cubin, and as its compiler's log: either an ein::Error of kind `file`, or kernels
// that a cubin of this size can have.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ein/error.hpp>

#include "cuda/cubin.hpp"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz_cubin: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    for (const ein::gpu::KernelResources& kernel : ein::gpu::kernels_of({bytes, bytes})) {
      require(!kernel.name.empty(), "a kernel without a name");
      require(kernel.registers >= 0 && kernel.registers <= 255, "too many registers");
      require(kernel.shared_bytes >= 0 && kernel.stack_bytes >= 0, "negative memory");
      require(kernel.max_threads >= 0 && kernel.max_threads <= 1024, "too many threads");
      require(static_cast<std::size_t>(kernel.code_bytes) <= size, "code beyond the file");
    }
  } catch (const ein::Error& error) {
    require(error.kind() == ein::ErrorKind::file, "an error of another kind");
  }
  return 0;
}
