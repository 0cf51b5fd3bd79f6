// EIN_IS_SANITIZED: a sanitizer watches the heap, and everything takes longer.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EIN_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define EIN_IS_SANITIZED 1
#endif
#endif
