// Compiled functions whose arguments have another length in each call.
#include <memory>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "harness.hpp"

namespace bench {
namespace {

using ein::Tensor;

Tensor softmax_of_scores(const Tensor& x) {
  return ein::softmax(ein::einsum(x, x, "b s c, b t c -> b s t") * 0.125, "b s [t]");
}

/// Arguments of 61 lengths, one after the other: more than programs are kept.
class Lengths {
 public:
  Lengths() {
    for (std::int64_t s = 100; s < 161; ++s) arguments_.push_back(ein::randn({2, s, 64}));
  }
  const Tensor& next() { return arguments_[at_++ % arguments_.size()]; }

 private:
  std::vector<Tensor> arguments_;
  std::size_t at_ = 0;
};

}  // namespace

void lengths(Bench& bench) {
  bench.section("Nanoseconds per call of a function compiled for any length");
  const auto f = std::make_shared<ein::Compiled<Tensor (*)(const Tensor&)>>(
      ein::compile(&softmax_of_scores, {"b=2 s c=64"}));
  const auto other = std::make_shared<Lengths>(), same = std::make_shared<Lengths>();
  const Tensor x = same->next();
  const auto kept = [=] { return (*f)(x); };
  bench.run({.title = "softmax of scores 2 x 100 x 64, the same length",
             .peer = "eager calls",
             .ours = kept,
             .beside = [=] { softmax_of_scores(x); },
             .unit = "ns",
             .expected = [=] { return softmax_of_scores(x); }},
            {1});
  bench.run({.title = "softmax of scores 2 x 100 to 160 x 64, another length each call",
             .peer = "the program of one length",
             .ours = [=] { return (*f)(other->next()); },
             .beside = [=] { kept(); },
             .unit = "ns",
             .expected = nullptr},
            {1});
}

}  // namespace bench
