// Compiled functions, and eager calls, whose arguments have another length in each call.
#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn/transformer.hpp>
#include <ein/optim.hpp>
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

/// The model of `ein train`, with other positions.
ein::nn::TransformerConfig model_of(std::int64_t positions) {
  return {.vocab_size = 65, .block_size = positions, .n_layer = 4, .n_head = 4, .n_embd = 128};
}

Tensor random_tokens(const ein::Shape& shape) {
  return (ein::rand(shape) * 65).to(ein::DType::i64);
}

/// A compiled function as one that can be copied.
template <class F>
auto kept(ein::Compiled<F> f) {
  return [f = std::make_shared<ein::Compiled<F>>(std::move(f))](const auto&... x) {
    return (*f)(x...);
  };
}

/// Decodes tokens one by one. The cache is state of a compiled function, with room for all.
class Decoding {
 public:
  enum class Reads { all_of_the_cache, what_is_there };
  explicit Decoding(Reads reads) : reads_(reads) {}

  /// The logits after the last of the tokens from position `first` to before `end`.
  Tensor decode(std::int64_t first, std::int64_t end) {
    Tensor logits;
    for (std::int64_t p = first; p < end; ++p) {
      logits = reads_ == Reads::what_is_there
                   ? growing_(text_.at({ein::slice(0, p + 1)}))
                   : fixed_(text_.at({ein::slice(p, p + 1)}), ein::full({}, p, ein::DType::i64));
    }
    return logits;
  }

 private:
  static constexpr std::int64_t room_ = 256;

  /// The argument is the text so far, of which the last token is new.
  Tensor with_growing_cache(const Tensor& text) const {
    const ein::Size before = ein::size_of(text, "t") - 1;
    std::vector<ein::nn::KVCache> cache = cache_;
    for (ein::nn::KVCache& block : cache) block.length = before;
    return model_.next_logits(text.at({ein::slice(before)}).view({1, 1}), cache);
  }
  Tensor with_fixed_cache(const Tensor& token, const Tensor& position) const {
    return model_.next_logits(token.view({1, 1}), cache_, position);
  }

  Reads reads_;
  ein::nn::Transformer model_{model_of(room_)};
  Tensor text_ = random_tokens({room_});
  std::vector<ein::nn::KVCache> cache_ = model_.make_cache();
  std::function<Tensor(const Tensor&)> growing_ =
      kept(ein::compile([this](const Tensor& text) { return with_growing_cache(text); }, {"t"}));
  std::function<Tensor(const Tensor&, const Tensor&)> fixed_ =
      kept(ein::compile([this](const Tensor& token, const Tensor& position) {
        return with_fixed_cache(token, position);
      }));
};

/// Steps of training that model.
class Training {
 public:
  enum class For { any_length, one_length };
  explicit Training(For sizes) {
    const auto step = [this](const Tensor& tokens, const Tensor& targets) {
      optimizer_.zero_grad();
      const Tensor loss = cross_entropy(model_(tokens), targets, "b s [v], b s");
      loss.backward();
      ein::clip_grad_norm(optimizer_.parameters(), 1.0);
      optimizer_.step();
      return loss.detach();
    };
    step_ =
        kept(sizes == For::any_length ? ein::compile(step, {"b s", "b s"}) : ein::compile(step));
  }

  Tensor step(std::int64_t length) {
    const auto part = [&](std::int64_t begin) {
      return text_.at({ein::slice(begin, begin + batch_ * length)}).view({batch_, length});
    };
    return step_(part(0), part(1));
  }

 private:
  static constexpr std::int64_t batch_ = 12, positions_ = 128;

  ein::nn::Transformer model_{model_of(positions_)};
  ein::optim::AdamW optimizer_{model_.parameters()};
  Tensor text_ = random_tokens({batch_ * positions_ + 1});
  std::function<Tensor(const Tensor&, const Tensor&)> step_;
};

void decoding(Bench& bench) {
  using Reads = Decoding::Reads;
  const auto make = [](Reads reads) {
    ein::manual_seed(1337);
    return std::make_shared<Decoding>(reads);
  };
  const auto ours = make(Reads::what_is_there), fixed = make(Reads::all_of_the_cache);
  const auto row = [&](const std::string& title, std::int64_t first, std::int64_t end) {
    bench.run({.title = title,
               .peer = "a cache of fixed size",
               .ours = [=] { return ours->decode(first, end); },
               .beside = [=] { fixed->decode(first, end); },
               .work = static_cast<double>(end - first),
               .unit = "us/token",
               .target = at_least(1 / 1.1),
               .expected = [=] { return fixed->decode(first, end); }},
              {1});
  };
  row("decoding 256 tokens, a growing cache", 0, 256);
  row("decoding tokens 120 to 127, again and again", 120, 128);
}

void training(Bench& bench) {
  using For = Training::For;
  const auto any = std::make_shared<Training>(For::any_length),
             one = std::make_shared<Training>(For::one_length);
  bench.run({.title = "training step 12 x 64, for any batch and length",
             .peer = "for these numbers alone",
             .ours = [=] { return any->step(64); },
             .beside = [=] { one->step(64); },
             .work = 12 * 64,
             .unit = "us/token",
             .target = at_least(1 / 1.03),
             .expected = nullptr},
            {1});
  // As many tokens as two steps of length 64 have, and at most a hundredth more FLOPs.
  const auto row = [&](const std::string& title, std::int64_t apart, std::int64_t times) {
    bench.run({.title = title,
               .peer = "steps of length 64",
               .ours =
                   [=, random = std::mt19937(1337)]() mutable {
                     const std::int64_t d = apart * (1 + random() % times);
                     any->step(64 - d);
                     return any->step(64 + d);
                   },
               .beside =
                   [=] {
                     one->step(64);
                     one->step(64);
                   },
               .work = 2 * 12 * 64,
               .unit = "us/token",
               .target = at_least(1 / 1.2),
               .expected = nullptr},
              {1});
  };
  row("training steps of random lengths, 32 to 96", 1, 32);
  row("training steps of lengths 48, 56, 72, 80", 8, 2);
}

/// Operands of 6400 shapes, one after the other, all in the same memory: more than plans are kept.
class NewShapes {
 public:
  struct Operands {
    Tensor x, positions;  // b s c, and below 64 for each b and s
  };
  NewShapes() {
    for (std::int64_t s = 64; s < 164; ++s) {
      for (std::int64_t c = 64; c < 128; ++c) shapes_.push_back(of(s, c));
    }
    std::shuffle(shapes_.begin(), shapes_.end(), std::mt19937(1337));
  }
  const Operands& next() { return shapes_[at_++ % shapes_.size()]; }
  Operands mean() const { return of(113, 95); }

 private:
  Operands of(std::int64_t s, std::int64_t c) const {
    return {elements_.at({ein::slice(0, 2 * s * c)}).view({2, s, c}),
            positions_.at({ein::slice(0, 2 * s)}).view({2, s})};
  }

  Tensor elements_ = ein::randn({2 * 164 * 128});
  Tensor positions_ = (ein::rand({2 * 164}) * 64).to(ein::DType::i64);
  std::vector<Operands> shapes_;
  std::size_t at_ = 0;
};

/// An eager call of sums makes a plan for each shape; others, as a compiled function, put numbers
/// into one of a range.
void new_shapes(Bench& bench) {
  bench.section("Nanoseconds per eager call of a shape that was not met before");
  const auto shapes = std::make_shared<NewShapes>();
  const auto row = [&](const std::string& title, auto call) {
    const auto compiled = kept(ein::compile(call, {"b=2 s c", "b=2 s"}));
    bench.run({.title = title + ", a new shape",
               .peer = "compiled for any length",
               .ours =
                   [=] {
                     const NewShapes::Operands& of = shapes->next();
                     return call(of.x, of.positions);
                   },
               .beside =
                   [=] {
                     const NewShapes::Operands& of = shapes->next();
                     compiled(of.x, of.positions);
                   },
               .unit = "ns",
               .expected = nullptr},
              {1});
    bench.run({.title = title + ", the same shape",
               .peer = "",
               .ours = [=, of = shapes->mean()] { return call(of.x, of.positions); },
               .beside = nullptr,
               .unit = "ns",
               .expected = nullptr},
              {1});
  };
  using X = const Tensor&;
  const auto scores = [](X x, X) { return einsum(x, x, "b s c, b t c -> b s t"); };
  const auto softmax_of_rows = [](X x, X) { return softmax(x, "b s [c]"); };
  const auto norm = [](X x, X) { return layer_norm(x, "b s [c]"); };
  const auto loss = [](X x, X positions) { return cross_entropy(x, positions, "b s [c], b s"); };
  row("x + x", [](X x, X) { return x + x; });
  row("transposition", [](X x, X) { return rearrange(x, "b s c -> b c s").clone(); });
  row("gather", [](X x, X positions) { return gather(x, positions, "b [s] c, b t -> b t c"); });
  row("sum of rows", [](X x, X) { return reduce(x, "b s c -> b s", "sum"); });
  row("sum of columns", [](X x, X) { return reduce(x, "b s c -> b c", "sum"); });
  row("scores", scores);
  row("softmax", softmax_of_rows);
  row("layer norm", norm);
  row("cross entropy", loss);
  const auto with_gradient = [&](const std::string& title, auto call) {
    row(title + " and gradient", [=](X x, X positions) {
      const Tensor of = x.detach().requires_grad(true), y = call(of, positions);
      return ein::gradients(y, y.detach(), {&of, 1})[0];
    });
  };
  with_gradient("scores", scores);
  with_gradient("softmax", softmax_of_rows);
  with_gradient("layer norm", norm);
  with_gradient("cross entropy", loss);
}

}  // namespace

void lengths(Bench& bench) {
  bench.section("Nanoseconds per call of a function compiled for any length");
  const auto f = std::make_shared<ein::Compiled<Tensor (*)(const Tensor&)>>(
      ein::compile(&softmax_of_scores, {"b=2 s c=64"}));
  const auto other = std::make_shared<Lengths>();
  const Tensor x = ein::randn({2, 130, 64});  // the mean of the other lengths
  const auto kept = [=] { return (*f)(x); };
  bench.run({.title = "softmax of scores 2 x 130 x 64, the same length",
             .peer = "eager calls",
             .ours = kept,
             .beside = [=] { softmax_of_scores(x); },
             .unit = "ns",
             .expected = [=] { return softmax_of_scores(x); }},
            {1});
  bench.run({.title = "softmax of scores 2 x 100 to 160 x 64, another length each call",
             .peer = "the program of length 130",
             .ours = [=] { return (*f)(other->next()); },
             .beside = [=] { kept(); },
             .unit = "ns",
             .expected = nullptr},
            {1});
  decoding(bench);
  training(bench);
  new_shapes(bench);
}

}  // namespace bench
