// What samples/12_typed_gpt2.cpp computes with, for the mistakes that are planted in it.
#pragma once

#include <ein/ein.hpp>

namespace gpt2 {

using ein::Float;

struct Weights {
  Float<"vocab hidden"> words = ein::ones({7, 8});
  Float<"hidden"> scale = ein::ones({8}), shift = ein::zeros({8});
  Float<"hidden heads d"> to_q = ein::ones({8, 2, 4}), to_k = to_q, to_v = to_q;
  Float<"heads d"> bias_q = ein::ones({2, 4});
  Float<"heads d hidden"> to_result = ein::ones({2, 4, 8});
  Float<"hidden inner"> up = ein::ones({8, 32});
  Float<"inner"> bias_up = ein::ones({32});
  Float<"inner hidden"> down = ein::ones({32, 8});
};
inline const Weights w;
inline const Float<"batch seq hidden"> x = ein::ones({3, 5, 8});
inline const Float<"batch heads seq d"> q = ein::ones({3, 2, 5, 4}), k = q;
inline const Float<"batch heads keys d"> keys = k.rename<"seq", "keys">(), values = keys;
inline const Float<"batch heads seq keys"> scores = ein::ones({3, 2, 5, 5});
inline const Float<"batch seq vocab"> logits = ein::ones({3, 5, 7});
inline const ein::Long<"batch seq"> tokens = ein::zeros({3, 5}, ein::DType::i64);

}  // namespace gpt2
