// The compilers that read these headers: GCC 11 and Clang 16, or later ones.
#pragma once

#if defined(__apple_build_version__)  // Apple counts its own versions of Clang: 15 is LLVM's 16
#define EIN_OLDEST_CLANG 15
#else
#define EIN_OLDEST_CLANG 16
#endif
// A fatal warning ends the reading here: an #error would be the first of hundreds.
#if defined(__clang__) && __clang_major__ < EIN_OLDEST_CLANG
#pragma clang diagnostic fatal "-W#warnings"
#warning "ein needs Clang 16 (of Apple 15) or later, or GCC 11 or later"
#elif defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 11
#error "ein needs GCC 11 or later, or Clang 16 or later"
#endif
#undef EIN_OLDEST_CLANG
