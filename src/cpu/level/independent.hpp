// A word to compilers.
#pragma once

/// Before a loop no iteration of which reads what another has written: compilers need not prove
/// that to make vector code of it.
#if defined(__clang__)
#define EIN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define EIN_INDEPENDENT _Pragma("GCC ivdep")
#endif
