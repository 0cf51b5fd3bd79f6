// samples/13_typed_decoder.cpp, for the mistakes that are planted in it.
#pragma once

#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>

#pragma push_macro("main")
#undef main
#define main decoder_main
namespace decoder {
#include "../../../samples/13_typed_decoder.cpp"

inline const Float<"batch heads seq d_k"> q = ein::ones({3, 2, 5, 4}), k = q;
inline const Float<"batch heads keys d_k"> keys = k.rename<"seq", "keys">(), values = keys;
inline const Float<"batch seq d_model"> x = ein::ones({3, 5, 8});
inline const Layer w{.norm1 = ein::ones({8}),
                     .norm2 = ein::ones({8}),
                     .query = ein::ones({8, 2, 4}),
                     .key = ein::ones({8, 2, 4}),
                     .value = ein::ones({8, 2, 4}),
                     .output = ein::ones({2, 4, 8}),
                     .gate = ein::ones({8, 16}),
                     .up = ein::ones({8, 16}),
                     .down = ein::ones({16, 8})};
}  // namespace decoder
#pragma pop_macro("main")
