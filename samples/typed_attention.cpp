// A block of multi-head attention and a two-layer MLP whose axes are in the types: the compiler
// finds the axes of every result, and refuses what does not fit.
#include <cmath>
#include <cstdio>
#include <type_traits>

#include <ein/ein.hpp>

using namespace ein::literals;
using ein::einsum;
using ein::Float;
using ein::rearrange;
using ein::reduce;
using ein::size_c;

using Batch = Float<"batch seq hidden=64">;

/// What the compiler says a result is, checked where it is written.
template <class Expected, class Result>
const Result& is(const Result& result) {
  static_assert(std::is_same_v<Result, Expected>);
  return result;
}

Float<"batch heads=4 seq keys"> softmax(const Float<"batch heads=4 seq keys">& scores) {
  const auto largest =
      is<Float<"batch heads=4 seq 1">>(reduce<"b h s t -> b h s 1">(scores, "max"));
  const Float<"batch heads=4 seq keys"> e = exp(scores - largest);
  return e / reduce<"b h s t -> b h s 1">(e, "sum");
}

struct Attention {
  Float<"hidden=64 out=64"> to_q, to_k, to_v, to_result;

  Batch operator()(const Batch& x) const {
    const auto heads = [](const auto& projected) {
      return rearrange<"b s (heads d) -> b heads s d">(projected, "heads"_a = size_c<4>);
    };
    const auto q =
        is<Float<"batch heads=4 seq d=16">>(heads(einsum<"b s h, h o -> b s o">(x, to_q)));
    const auto k = heads(einsum<"b s h, h o -> b s o">(x, to_k));
    const auto v = heads(einsum<"b s h, h o -> b s o">(x, to_v));

    // Along the keys the same axis has a second name, so that it is not summed with the queries'.
    const Float<"batch heads=4 keys d=16"> keys = k, values = v;
    const auto scores = is<Float<"batch heads=4 seq keys">>(
        einsum<"b heads s d, b heads t d -> b heads s t">(q, keys));
    const auto weights = softmax(scores / std::sqrt(16.0f));
    const auto mixed = is<Float<"batch heads=4 seq d=16">>(
        einsum<"b heads s t, b heads t d -> b heads s d">(weights, values));
    const auto joined = is<Float<"batch seq 64">>(rearrange<"b heads s d -> b s (heads d)">(mixed));
    return einsum<"b s h, h o -> b s o">(joined, to_result);
  }
};

struct Mlp {
  Float<"hidden=64 inner=256"> up;
  Float<"inner=256 hidden=64"> down;

  Batch operator()(const Batch& x) const {
    const auto inner = is<Float<"batch seq inner=256">>(einsum<"b s h, h i -> b s i">(x, up));
    const Float<"batch seq inner=256"> active = gelu(inner);
    return is<Batch>(einsum<"b s i, i h -> b s h">(active, down));
  }
};

int main() {
  ein::manual_seed(0);
  const auto weights = [](std::int64_t in, std::int64_t out) {
    return ein::randn({in, out}) / std::sqrt(static_cast<float>(in));
  };
  const Attention attention{weights(64, 64), weights(64, 64), weights(64, 64), weights(64, 64)};
  const Mlp mlp{weights(64, 256), weights(256, 64)};

  const ein::Scope names;  // from here on "batch" and "seq" are one size each
  const Batch x = ein::randn({2, 10, 64});
  const Batch attended = x + attention(x);
  const Batch result = attended + mlp(attended);
  std::printf("%s -> %s\n", x.shape().to_string().c_str(), result.shape().to_string().c_str());
}
