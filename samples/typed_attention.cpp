// A block of multi-head attention and a two-layer MLP whose axes are in the types of its arguments
// and weights alone: the compiler finds the axes of every result, operands meet by name, and what
// does not fit is refused where it is written.
#include <cmath>
#include <cstdio>
#include <type_traits>

#include <ein/ein.hpp>

using namespace ein::literals;
using ein::einsum;
using ein::Float;
using ein::rearrange;
using ein::size_c;

using Batch = Float<"batch seq hidden=64">;

/// What the compiler says a result is, checked where it is written.
template <class Expected, class Result>
const Result& is(const Result& result) {
  static_assert(std::is_same_v<Result, Expected>);
  return result;
}

struct Attention {
  Float<"hidden=64 out=64"> to_q, to_k, to_v, to_result;
  Float<"hidden=64"> bias;

  Batch operator()(const Batch& x) const {
    const auto heads = [](const auto& projected) {
      return rearrange<"b s (heads d) -> b heads s d">(projected, "heads"_a = size_c<4>);
    };
    const auto q =
        is<Float<"batch heads=4 seq d=16">>(heads(einsum<"b s h, h o -> b s o">(x, to_q)));
    const auto k = heads(einsum<"b s h, h o -> b s o">(x, to_k));
    const auto v = heads(einsum<"b s h, h o -> b s o">(x, to_v));

    // Along the keys the same axis has a second name, so that it is not summed with the queries'.
    const auto keys = k.rename<"seq", "keys">(), values = v.rename<"seq", "keys">();
    const auto scores = einsum<"b heads s d, b heads t d -> b heads s t">(q, keys);
    const auto weights = is<Float<"batch heads=4 seq keys">>(
        softmax(scores / std::sqrt(16.0f), "batch heads seq [keys]"));
    const auto mixed = einsum<"b heads s t, b heads t d -> b heads s d">(weights, values);
    const auto joined = is<Float<"batch seq 64">>(rearrange<"b heads s d -> b s (heads d)">(mixed));
    // The bias has one of the axes; it meets that one, wherever it stands.
    return bias + einsum<"b s o, h o -> b s h">(joined, to_result);
  }
};

struct Mlp {
  Float<"hidden=64 inner=256"> up;
  Float<"inner=256 hidden=64"> down;

  Batch operator()(const Batch& x) const {
    const auto active =
        is<Float<"batch seq inner=256">>(gelu(einsum<"b s h, h i -> b s i">(x, up)));
    return einsum<"b s i, i h -> b s h">(active, down);
  }
};

int main() {
  ein::manual_seed(0);
  const auto weights = [](std::int64_t in, std::int64_t out) {
    return ein::randn({in, out}) / std::sqrt(static_cast<float>(in));
  };
  const Attention attention{weights(64, 64), weights(64, 64), weights(64, 64), weights(64, 64),
                            ein::randn({64})};
  const Mlp mlp{weights(64, 256), weights(256, 64)};

  const Batch x = ein::randn({2, 10, 64});
  const ein::Scope names(x);  // from here on "batch" and "seq" are one size each
  const auto attended = is<Batch>(x + attention(x));
  const auto result = is<Batch>(attended + mlp(attended));
  std::printf("%s -> %s\n", x.shape().to_string().c_str(), result.shape().to_string().c_str());
}
