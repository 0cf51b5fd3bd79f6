// A word to compilers.
#pragma once

/// Stands before a loop with independent iterations, so that compilers make vector code of it
/// without a proof.
#if defined(__clang__)
#define EIN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define EIN_INDEPENDENT _Pragma("GCC ivdep")
#endif
