// Functions of a tensor "b s c" that are to work for any b and s.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <ein/ein.hpp>

namespace ein::test {

using FunctionOfLengths = std::pair<const char*, std::function<Tensor(const Tensor&)>>;

inline std::vector<FunctionOfLengths> functions_of_lengths() {
  using namespace literals;
  return {
      {"mean", [](const Tensor& x) { return reduce(x, "b s c -> b c", "mean"); }},
      {"var", [](const Tensor& x) { return reduce(x, "b s c -> b", "var"); }},
      {"logsumexp", [](const Tensor& x) { return reduce(x, "b s c -> s", "logsumexp"); }},
      {"max", [](const Tensor& x) { return reduce(x, "b s c -> b c", "max"); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, "b s [c]"); }},
      {"norm over s", [](const Tensor& x) { return rms_norm(x, "b [s] c"); }},
      {"transposed", [](const Tensor& x) { return rearrange(x, "b s c -> s (c b)"); }},
      {"split", [](const Tensor& x) { return rearrange(x, "b (s g) c -> b s (g c)", "g"_a = 1); }},
      {"flat", [](const Tensor& x) { return rearrange(x, "b s c -> (b s c)"); }},
      {"product", [](const Tensor& x) { return einsum(x, x, "b s c, b t c -> s t"); }},
      {"of all", [](const Tensor& x) { return einsum(x, "b s c ->"); }},
      {"sorted", [](const Tensor& x) { return sort(x, "b [s] c").values; }},
      {"argmax", [](const Tensor& x) { return argmax(x, "b [s] c"); }},
      {"cumsum", [](const Tensor& x) { return cumsum(x, "b [s] c"); }},
      {"slice",
       [](const Tensor& x) {
         return x.at({every, slice(0, -1)}) * 2.0;
       }},
      {"two slices",
       [](const Tensor& x) {
         return x.at({every, slice(1)}) - x.at({every, slice(0, -1)});
       }},
      {"last",
       [](const Tensor& x) {
         return x.at({every, -1}) + 1.0;
       }},
      {"reshape",
       [](const Tensor& x) {
         return exp(x).reshape({x.shape()[0] * x.shape()[1], x.shape()[2]});
       }},
      {"stack",
       [](const Tensor& x) {
         return rearrange(std::vector<Tensor>{x, x * 2.0}, "t b s c -> b s t c");
       }},
      {"causal",
       [](const Tensor& x) { return tril(einsum(x, x, "b s c, b t c -> b s t"), "b [s t]"); }},
      {"broadcast", [](const Tensor& x) { return x - reduce(x, "b s c -> b 1 c", "mean"); }},
      {"clone", [](const Tensor& x) { return x.clone(); }},
      {"positions",
       [](const Tensor& x) {
         const Size s = size_of(x, "s");
         const Tensor at = arange(s, x.device()).to(DType::f32) / s;
         return einsum(x, at, "b s c, s -> b c");
       }},
      {"new",
       [](const Tensor& x) {
         return zeros({size_of(x, "s"), 2}, x.device()) + reduce(x, "b s c -> s 1", "sum");
       }},
      {"repeated",
       [](const Tensor& x) {
         return repeat(reduce(x, "b s c -> b c", "sum"), "b c -> b s c", "s"_a = size_of(x, "s"));
       }},
      {"half",
       [](const Tensor& x) {
         return x.at({every, slice(0, size_of(x, "s") / 2)}) * 1.0;
       }},
  };
}

}  // namespace ein::test
