// Loops of functions as in strips, each of which is to become vector code: run.cmake asks the
// compiler. (erf of f64 is the C library's, which has none.)
#include "cpu/functions.hpp"

#include "cpu/level/independent.hpp"

#define LOOP(function, C)                                                    \
  void function##_of_##C(const C* x, C* y, int n) {                          \
    EIN_INDEPENDENT                                                          \
    for (int i = 0; i < n; ++i) y[i] = ein::host::functions::function(x[i]); \
  }

LOOP(exp, float)
LOOP(log, float)
LOOP(tanh, float)
LOOP(erf, float)
LOOP(sigmoid, float)
LOOP(silu, float)
LOOP(normal_cdf, float)
LOOP(gelu, float)
LOOP(gelu_slope, float)
LOOP(normal_cdf_of_16_bits, float)
LOOP(gelu_of_16_bits, float)
LOOP(gelu_slope_of_16_bits, float)
LOOP(exp, double)
LOOP(log, double)
LOOP(tanh, double)
LOOP(sigmoid, double)
LOOP(silu, double)
LOOP(normal_cdf, double)
LOOP(gelu, double)
LOOP(gelu_slope, double)
