// Every numeric option of optimizers, schedules, layers, data and training: what it may be, and the
// Error for what it may not. An option that is new does not compile here until it has its row.
#include <gtest/gtest.h>

#include <charconv>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <ein/data.hpp>
#include <ein/ein.hpp>
#include <ein/grad_scaler.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include <ein/schedule.hpp>
#include <ein/train.hpp>
#include "support/expect_error.hpp"

namespace ein {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double beyond_one = 1 + 1e-9, before_zero = -1e-9;

/// One option: `use` makes something with this value of it.
struct Option {
  std::string of, name;
  std::vector<double> allowed, refused;
  std::function<void(double)> use;
};

const std::vector<double> not_negative{0, 1e-9, 1e9}, negative{before_zero, -1, inf, nan};
const std::vector<double> below_one{0, 0.5, 1 - 1e-9}, beyond{before_zero, 1, beyond_one, inf, nan};
const std::vector<double> counts{1, 7}, no_counts{0, -1};
const std::vector<double> numbers{0, 7}, no_numbers{-1, -100};

/// As a person writes it.
std::string text_of(double value) {
  char text[32];
  return {text, std::to_chars(text, std::end(text), value).ptr};
}

Tensor parameter() { return ones({2}).requires_grad(true); }

/// Rows of options of an optimizer O, whose field `field` is set.
template <class O, class Options, class Field>
Option of_optimizer(const char* of, const char* name, Field Options::*field,
                    const std::vector<double>& allowed, const std::vector<double>& refused) {
  return {of, name, allowed, refused, [field](double value) {
            Options options;
            options.*field = value;
            O({parameter()}, options);
          }};
}
template <class O, class Options>
Option of_beta(const char* of, std::size_t which) {
  return {of, "betas[" + std::to_string(which) + "]", below_one, beyond, [which](double value) {
            Options options;
            options.betas[which] = value;
            O({parameter()}, options);
          }};
}

/// How many fields each struct has, as its rows were written: another number does not compile.
[[maybe_unused]] void fields() {
  using namespace optim;
  [[maybe_unused]] const auto& [a1, a2, a3, a4, a5] = SGDOptions{};
  [[maybe_unused]] const auto& [b1, b2, b3, b4, b5, b6] = AdaGradOptions{};
  [[maybe_unused]] const auto& [c1, c2, c3, c4, c5, c6] = RMSPropOptions{};
  [[maybe_unused]] const auto& [d1, d2, d3, d4, d5, d6] = AdamOptions{};
  [[maybe_unused]] const auto& [e1, e2, e3, e4] = LAMBOptions{};
  [[maybe_unused]] const auto& [f1, f2, f3] = ParameterGroup{};
  [[maybe_unused]] const auto& [g1, g2, g3] = Constant{};
  [[maybe_unused]] const auto& [h1, h2, h3, h4, h5] = Linear{};
  [[maybe_unused]] const auto& [i1, i2, i3, i4, i5] = CosineWithWarmup{};
  [[maybe_unused]] const auto& [j1, j2, j3, j4, j5, j6] = WSD{};
  [[maybe_unused]] const auto& [o1, o2, o3, o4, o5, o6, o7, o8, o9] = MuonOptions{};
  [[maybe_unused]] const auto& [k1, k2, k3, k4, k5] = GradScalerOptions{};
  [[maybe_unused]] const auto& [l1, l2, l3, l4, l5, l6, l7] = nn::TransformerConfig{};
  [[maybe_unused]] const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] =
      SampleOptions{};
  [[maybe_unused]] const auto& [n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15,
                                n16, n17, n18, n19, n20, n21, n22, n23, n24, n25, n26, n27, n28,
                                n29, n30, n31, n32, n33, n34] = TrainOptions{};
}

std::vector<Option> of_optimizers() {
  using namespace optim;
  std::vector<Option> all;
#define EIN_OPTION(O, field, allowed, refused) \
  all.push_back(of_optimizer<O>(#O, #field, &O##Options::field, allowed, refused))
  EIN_OPTION(SGD, learning_rate, not_negative, negative);
  EIN_OPTION(SGD, momentum, below_one, beyond);
  EIN_OPTION(SGD, dampening, (std::vector<double>{0, 0.5, 1}),
             (std::vector<double>{before_zero, beyond_one, inf, nan}));
  EIN_OPTION(SGD, weight_decay, not_negative, negative);
  EIN_OPTION(AdaGrad, learning_rate, not_negative, negative);
  EIN_OPTION(AdaGrad, learning_rate_decay, not_negative, negative);
  EIN_OPTION(AdaGrad, initial_accumulator, not_negative, negative);
  EIN_OPTION(AdaGrad, eps, not_negative, negative);
  EIN_OPTION(AdaGrad, weight_decay, not_negative, negative);
  EIN_OPTION(RMSProp, learning_rate, not_negative, negative);
  EIN_OPTION(RMSProp, alpha, below_one, beyond);
  EIN_OPTION(RMSProp, eps, not_negative, negative);
  EIN_OPTION(RMSProp, momentum, below_one, beyond);
  EIN_OPTION(RMSProp, weight_decay, not_negative, negative);
  EIN_OPTION(Adam, learning_rate, not_negative, negative);
  EIN_OPTION(Adam, eps, not_negative, negative);
  EIN_OPTION(Adam, weight_decay, not_negative, negative);
  EIN_OPTION(LAMB, learning_rate, not_negative, negative);
  EIN_OPTION(LAMB, eps, not_negative, negative);
  EIN_OPTION(LAMB, weight_decay, not_negative, negative);
#undef EIN_OPTION
  const auto muon = [&](const char* name, auto field, const std::vector<double>& refused) {
    all.push_back({"Muon", name, {}, refused, [field](double value) {
                     MuonOptions options;
                     options.*field =
                         static_cast<std::remove_reference_t<decltype(options.*field)>>(value);
                     Muon({ones({2, 2}).requires_grad(true)}, options);
                   }});
  };
  muon("learning_rate", &MuonOptions::learning_rate, negative);
  muon("momentum", &MuonOptions::momentum, beyond);
  muon("weight_decay", &MuonOptions::weight_decay, negative);
  muon("eps", &MuonOptions::eps, negative);
  muon("steps", &MuonOptions::steps, no_numbers);
  all.push_back(of_optimizer<AdamW>("AdamW", "learning_rate", &AdamOptions::learning_rate,
                                    not_negative, negative));
  all.push_back(of_optimizer<AdamW>("AdamW", "eps", &AdamOptions::eps, not_negative, negative));
  all.push_back(of_optimizer<AdamW>("AdamW", "weight_decay", &AdamOptions::weight_decay,
                                    not_negative, negative));
  for (const std::size_t i : {0, 1}) {
    all.push_back(of_beta<Adam, AdamOptions>("Adam", i));
    all.push_back(of_beta<AdamW, AdamOptions>("AdamW", i));
    all.push_back(of_beta<LAMB, LAMBOptions>("LAMB", i));
  }
  all.push_back({"SGD", "weight_decay", not_negative, negative, [](double value) {
                   SGD({{.parameters = {parameter()}, .weight_decay = value}});
                 }});
  all.push_back({"SGD", "learning_rate_factor", not_negative, negative, [](double value) {
                   SGD({{.parameters = {parameter()}, .learning_rate_factor = value}});
                 }});
  all.push_back({"SGD", "learning_rate", not_negative, negative,
                 [](double value) { SGD({parameter()}).set_learning_rate(value); }});
  return all;
}

std::vector<Option> of_schedules() {
  using namespace optim;
  std::vector<Option> all;
  const auto steps = [](double value) { return static_cast<std::int64_t>(value); };
  const auto add = [&]<class S>(const char* of, const S&) {
    all.push_back(
        {of, "learning_rate", not_negative, negative, [](double v) { S{.learning_rate = v}(0); }});
    all.push_back({of, "warmup_steps", numbers, no_numbers,
                   [=](double v) { S{.warmup_steps = steps(v)}(0); }});
    if constexpr (requires(S s) { s.end; }) {
      all.push_back({of, "min_learning_rate", not_negative, negative,
                     [](double v) { S{.min_learning_rate = v}(0); }});
      all.push_back({of, "end", numbers, no_numbers, [=](double v) { S{.end = steps(v)}(0); }});
    }
    if constexpr (requires(S s) { s.decay_begin; }) {
      all.push_back({of, "decay_begin", numbers, no_numbers,
                     [=](double v) { S{.decay_begin = steps(v), .end = 10}(0); }});
    }
  };
  add("Constant", Constant{});
  add("Linear", Linear{});
  add("CosineWithWarmup", CosineWithWarmup{});
  add("WSD", WSD{});
  return all;
}

std::vector<Option> of_scaler() {
  return {{"GradScaler",
           "scale",
           {1, 65536},
           {0, -1, 1e-39, 1e39, inf, nan},
           [](double v) { GradScaler({.scale = v}); }},
          {"GradScaler",
           "growth",
           {beyond_one, 2},
           {1, 0.5, -2, inf, nan},
           [](double v) { GradScaler({.growth = v}); }},
          {"GradScaler", "interval", counts, no_counts,
           [](double v) { GradScaler({.interval = static_cast<std::int64_t>(v)}); }},
          {"GradScaler", "backoff", {1e-9, 0.5}, {0, 1, -1, inf, nan}, [](double v) {
             GradScaler({.backoff = v});
           }}};
}

std::vector<Option> of_layers() {
  std::vector<Option> all;
  const auto size = [](double v) { return static_cast<std::int64_t>(v); };
  const auto add_size = [&](const char* of, const char* name,
                            std::function<void(std::int64_t)> use) {
    all.push_back({of, name, counts, no_counts, [=](double v) { use(size(v)); }});
  };
  add_size("Linear", "in", [](std::int64_t n) { nn::Linear(n, 1); });
  add_size("Linear", "out", [](std::int64_t n) { nn::Linear(1, n); });
  add_size("Embedding", "count", [](std::int64_t n) { nn::Embedding(n, 1); });
  add_size("Embedding", "dim", [](std::int64_t n) { nn::Embedding(1, n); });
  add_size("LayerNorm", "dim", [](std::int64_t n) { nn::LayerNorm norm(n); });
  add_size("RMSNorm", "dim", [](std::int64_t n) { nn::RMSNorm norm(n); });
  add_size("Attention", "dim", [](std::int64_t n) { nn::Attention(n, 1); });
  add_size("Attention", "heads", [](std::int64_t n) { nn::Attention(7, n); });
  add_size("MLP", "dim", [](std::int64_t n) { nn::MLP layer(n); });
  add_size("Cruncher", "dim", [](std::int64_t n) { nn::Cruncher(n, 1); });
  add_size("Attention::make_cache", "batch",
           [](std::int64_t n) { nn::Attention(4, 2).make_cache(n, 3); });
  add_size("Attention::make_cache", "room",
           [](std::int64_t n) { nn::Attention(4, 2).make_cache(3, n); });
  all.push_back(
      {"Cruncher", "layers", numbers, no_numbers, [=](double v) { nn::Cruncher(2, size(v)); }});
  all.push_back(
      {"LayerNorm", "eps", not_negative, negative, [](double v) { nn::LayerNorm(4, true, v); }});
  all.push_back({"RMSNorm", "eps", not_negative, negative, [](double v) { nn::RMSNorm(4, v); }});
  all.push_back({"Dropout", "p", below_one, beyond, [](double v) { nn::Dropout layer(v); }});
  all.push_back({"dropout", "p", below_one, beyond, [](double v) { dropout(ones({2}), v); }});
  all.push_back(
      {"Dropout", "p", below_one, beyond, [](double v) { nn::Attention(4, 2, true, v); }});
  all.push_back({"Dropout", "p", below_one, beyond, [](double v) { nn::MLP(4, true, v); }});
  all.push_back({"normal", "std", not_negative, negative,
                 [](double v) { nn::init::normal(ones({2}), 0, v); }});
  all.push_back({"clip_grad_norm", "max_norm", {0, 1, inf}, {before_zero, -inf, nan}, [](double v) {
                   clip_grad_norm(std::vector<Tensor>{parameter()}, v);
                 }});
  using Config = nn::TransformerConfig;
  const Config small{.vocab_size = 5, .block_size = 4, .n_layer = 1, .n_head = 1, .n_embd = 7};
  const auto add_field = [&](const char* of, const char* name, std::int64_t Config::*field) {
    add_size(of, name, [=](std::int64_t n) {
      Config config = small;
      config.*field = n;
      nn::Transformer model(config);
    });
  };
  add_field("Embedding", "count", &Config::vocab_size);
  add_field("Embedding", "count", &Config::block_size);
  add_field("Decoder", "layers", &Config::n_layer);
  add_field("Attention", "heads", &Config::n_head);
  add_field("Embedding", "dim", &Config::n_embd);
  all.push_back({"Dropout", "p", below_one, beyond, [=](double v) {
                   Config config = small;
                   config.dropout = v;
                   nn::Transformer model(config);
                 }});
  return all;
}

std::vector<Option> of_data() {
  const Tokens tokens(arange(100));
  const auto size = [](double v) { return static_cast<std::int64_t>(v); };
  return {{"get_batch", "batch", counts, no_counts,
           [=](double v) { get_batch(tokens, size(v), 4, 1, 0); }},
          {"get_batch", "length", counts, no_counts,
           [=](double v) { get_batch(tokens, 4, size(v), 1, 0); }},
          {"get_batch", "batch", counts, no_counts,
           [=](double v) { BatchSampler(tokens, size(v), 4, 1); }},
          {"get_batch", "length", counts, no_counts,
           [=](double v) { BatchSampler(tokens, 4, size(v), 1); }},
          {"split", "fraction", {0, 0.9, 1}, {before_zero, beyond_one, inf, nan}, [=](double v) {
             split(tokens, v);
           }}};
}

/// Values that are allowed are not tried: each would be a run.
std::vector<Option> of_training() {
  std::vector<Option> all;
  const auto add = [&](const char* name, auto field, const std::vector<double>& refused) {
    all.push_back({"train", name, {}, refused, [field](double v) {
                     TrainOptions options;
                     options.data = "/nowhere";
                     options.out = "/nowhere";
                     options.*field =
                         static_cast<std::remove_reference_t<decltype(options.*field)>>(v);
                     train(options, {});
                   }});
  };
  using T = TrainOptions;
  add("block size", &T::block_size, no_counts);
  add("batch size", &T::batch_size, no_counts);
  add("n layer", &T::n_layer, no_counts);
  add("n head", &T::n_head, no_counts);
  add("n embd", &T::n_embd, no_counts);
  add("max iters", &T::max_iters, no_numbers);
  add("warmup iters", &T::warmup_iters, no_numbers);
  add("grad accum", &T::grad_accum, no_counts);
  add("eval interval", &T::eval_interval, no_counts);
  add("eval iters", &T::eval_iters, no_counts);
  add("learning rate", &T::learning_rate, negative);
  add("min lr", &T::min_lr, negative);
  add("weight decay", &T::weight_decay, negative);
  add("grad clip", &T::grad_clip, negative);
  add("beta1", &T::beta1, beyond);
  add("beta2", &T::beta2, beyond);
  add("dropout", &T::dropout, beyond);
  add("zero", &T::zero, {-1, 4});
  add("validation fraction", &T::validation_fraction, beyond);
  const auto add_sample = [&](const char* name, auto field, const std::vector<double>& refused) {
    all.push_back({"sample", name, {}, refused, [field](double v) {
                     SampleOptions options{.from = "/nowhere"};
                     options.*field =
                         static_cast<std::remove_reference_t<decltype(options.*field)>>(v);
                     sample(options, [](const std::string&) {});
                   }});
  };
  add_sample("tokens", &SampleOptions::tokens, no_numbers);
  add_sample("temperature", &SampleOptions::temperature, negative);
  add_sample("top k", &SampleOptions::top_k, no_numbers);
  add_sample("top p", &SampleOptions::top_p, {0, -1, beyond_one, inf, nan});
  add_sample("min p", &SampleOptions::min_p, {before_zero, beyond_one, inf, nan});
  return all;
}

void check(const std::vector<Option>& options) {
  for (const Option& option : options) {
    for (const double value : option.allowed)
      EXPECT_NO_THROW(option.use(value)) << option.of << ": " << option.name << " = " << value;
    for (const double value : option.refused) {
      SCOPED_TRACE(option.of + ": " + option.name + " = " + std::to_string(value));
      test::expect_error([&] { option.use(value); }, ErrorKind::value,
                         {option.of + ": " + option.name + " is " + text_of(value), "wanted"});
    }
  }
}

TEST(Options, OfOptimizers) { check(of_optimizers()); }
TEST(Options, OfSchedules) { check(of_schedules()); }
TEST(Options, OfGradScaler) { check(of_scaler()); }
TEST(Options, OfLayers) { check(of_layers()); }
TEST(Options, OfData) { check(of_data()); }
TEST(Options, OfTraining) { check(of_training()); }

}  // namespace
}  // namespace ein
