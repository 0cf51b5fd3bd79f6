// EIN_IS_SANITIZED: a sanitizer watches the heap, and everything takes longer. Tests that were
// compiled without one may be linked with what was: is_sanitized() knows.
#pragma once

#include <dlfcn.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EIN_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define EIN_IS_SANITIZED 1
#endif
#endif

namespace ein::test {

inline bool is_sanitized() {
#ifdef EIN_IS_SANITIZED
  return true;
#else
  return ::dlsym(RTLD_DEFAULT, "__asan_init") || ::dlsym(RTLD_DEFAULT, "__tsan_init");
#endif
}

}  // namespace ein::test
