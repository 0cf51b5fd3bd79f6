// What the stand-in for CUDA's driver counts.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace ein::test {

/// Of "launches" (calls that start work), "kernels" (that ran), "tensor_maps" (encoded), "modules"
/// (loaded), "graphs" (instantiated). 0 where the driver is the system's.
inline int fake_count(const char* of) {
  if (std::getenv("EIN_TEST_GPU")) return 0;
  void* const library = ::dlopen(EIN_FAKE_CUDA, RTLD_NOW);
  const std::string function = "fake_cuda_" + std::string(of);
  return reinterpret_cast<int (*)()>(::dlsym(library, function.c_str()))();
}

}  // namespace ein::test
