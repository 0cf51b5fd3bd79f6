// Napkin mathematics against sums done by hand and published models.
#include <gtest/gtest.h>

#include <limits>

#include <ein/error.hpp>
#include <ein/napkin.hpp>

namespace ein::napkin {
namespace {

template <class F>
ErrorKind kind_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::syntax;
}

constexpr Transformer gpt2{
    .layers = 12, .width = 768, .heads = 12, .vocab = 50257, .context = 1024};

TEST(Training, TimeAndPrice) {
  const Fleet fleet{8, 312e12, 0.4};
  const double flops = training_flops(124'000'000, 10'000'000'000).approximate();
  EXPECT_DOUBLE_EQ(flops, 7.44e18);
  const double seconds = seconds_for(flops, fleet);
  EXPECT_DOUBLE_EQ(seconds, 7.44e18 / (8 * 312e12 * 0.4));
  EXPECT_DOUBLE_EQ(flops_in(seconds, fleet), flops);
  EXPECT_DOUBLE_EQ(dollars(seconds, 8, 2.5), seconds / 3600 * 8 * 2.5);
  EXPECT_DOUBLE_EQ(short_rule_seconds(124e6, 10e9, 8, 312e12),
                   seconds_for(flops, {8, 312e12, 0.5}));
}

TEST(Training, FlopsAreExactBeyond64Bits) {
  EXPECT_EQ(to_string(training_flops(Count(std::int64_t{123'456'789'012}),
                                     Count(std::int64_t{98'765'432'109'876}))),
            "73159578682007828000895072");  // 6 · 123456789012 · 98765432109876
  const Count most = Count(std::uint64_t{std::numeric_limits<std::uint64_t>::max()});
  EXPECT_EQ(kind_of([&] { training_flops(most, most); }), ErrorKind::overflow);
}

TEST(Training, NumbersOutsideTheirDomain) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Fleet& fleet : {Fleet{0, 1, 0.5}, Fleet{1, 0, 0.5}, Fleet{1, 1, 0}, Fleet{1, 1, 1.01},
                             Fleet{1, infinity, 1}}) {
    EXPECT_EQ(kind_of([&] { throughput(fleet); }), ErrorKind::value);
  }
  EXPECT_EQ(kind_of([] { seconds_for(-1, {1, 1, 1}); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { flops_in(0, {1, 1, 1}); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { short_rule_seconds(1, 1, 0, 1); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { dollars(1, 1, 0); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { largest_model(1, 1, 0); }), ErrorKind::value);
}

TEST(BytesPerParameter, ByOptimizerAndDtypes) {
  const auto f32 = [](Optimizer optimizer) {
    return bytes_per_parameter({optimizer, DType::f32, DType::f32, DType::f32, false});
  };
  EXPECT_EQ(f32(Optimizer::sgd), 8);
  EXPECT_EQ(f32(Optimizer::momentum), 12);
  EXPECT_EQ(f32(Optimizer::adagrad), 12);
  EXPECT_EQ(f32(Optimizer::rmsprop), 12);
  EXPECT_EQ(f32(Optimizer::adamw), 16);
  EXPECT_EQ(bytes_per_parameter(mixed_precision()), 16);
  EXPECT_EQ(bytes_per_parameter(mixed_precision(Optimizer::sgd)), 8);
  EXPECT_EQ(bytes_per_parameter({Optimizer::adamw, DType::bf16, DType::bf16, DType::bf16, false}),
            8);
  EXPECT_EQ(bytes_per_parameter({Optimizer::adamw, DType::f64, DType::f64, DType::f64, false}), 32);
}

// --- a Transformer ---

TEST(Transformer, ParametersOfGpt2) {
  const Parameters p = parameters(gpt2);
  EXPECT_EQ(p.total(),
            124'337'664);  // nanoGPT's sizing notebook: no biases, tied head, positions included
  EXPECT_EQ(p.token_embedding, 50257 * 768);
  EXPECT_EQ(p.position_embedding, 1024 * 768);
  EXPECT_EQ(p.attention, 12 * 4 * 768 * 768);
  EXPECT_EQ(p.mlp, 12 * 8 * 768 * 768);
  EXPECT_EQ(p.norms, 25 * 768);
  EXPECT_EQ(p.biases, 0);
  EXPECT_EQ(p.head, 0);
  EXPECT_EQ(p.multiplying(), 123'551'232);

  Transformer published = gpt2;
  published.has_biases = true;
  EXPECT_EQ(parameters(published).total(),
            124'439'808);  // Radford et al. 2019, the smallest; checkpoints' count
  published = {.layers = 24,
               .width = 1024,
               .heads = 16,
               .vocab = 50257,
               .context = 1024,
               .has_biases = true};
  EXPECT_EQ(parameters(published).total(), 354'823'168);
  published = {.layers = 48,
               .width = 1600,
               .heads = 25,
               .vocab = 50257,
               .context = 1024,
               .has_biases = true};
  EXPECT_EQ(parameters(published).total(), 1'557'611'200);

  Transformer untied = gpt2;
  untied.has_tied_head = false;
  EXPECT_EQ(parameters(untied).total(), Count(124'337'664 + 50257 * 768));
  EXPECT_EQ(parameters(untied).multiplying(), parameters(gpt2).multiplying());
}

TEST(Transformer, EstimatedParameters) {
  EXPECT_EQ(estimated_parameters(gpt2), 84'934'656);
  EXPECT_EQ(estimated_parameters(gpt2), parameters(gpt2).attention + parameters(gpt2).mlp);
}

TEST(Transformer, ForwardFlopsComeFromPatterns) {
  EXPECT_EQ(forward_flops(gpt2, 1),
            Count(std::int64_t{291'648'307'200}));  // nanoGPT's sizing notebook
  EXPECT_EQ(forward_flops(gpt2, 7), Count(7) * forward_flops(gpt2, 1));
  Count sum;
  for (const Matmul& product : forward_matmuls(gpt2, 2)) {
    EXPECT_EQ(product.cost.model, product.cost.matmul_only) << product.name;
    sum += product.flops();
  }
  EXPECT_EQ(sum, forward_flops(gpt2, 2));
}

TEST(Transformer, FlopsPerTokenInAllConventions) {
  const TokenFlops flops = training_flops_per_token(gpt2);
  EXPECT_EQ(flops.derived * Count(1024), Count(3) * forward_flops(gpt2, 1));
  EXPECT_EQ(flops.six_n, Count(6 * 123'551'232));
  EXPECT_EQ(flops.attention, 12 * 12 * 768 * 1024);
  EXPECT_EQ(flops.causal_attention, 6 * 12 * 768 * 1024);
  EXPECT_EQ(flops.palm(), 854'553'600);  // nanoGPT's estimate_mfu
  // 6·N takes the weights of norms for matrices; nothing else separates it from the count.
  EXPECT_EQ(flops.palm() - flops.derived, Count(6) * parameters(gpt2).norms);
  EXPECT_EQ(flops.palm() - flops.causal(), flops.causal_attention);
}

TEST(Transformer, AWidthOfTheMlp) {
  Transformer narrow = gpt2;
  narrow.mlp_width = 100;
  EXPECT_EQ(parameters(narrow).mlp, 12 * 2 * 768 * 100);
  EXPECT_EQ(forward_flops(gpt2, 1) - forward_flops(narrow, 1),
            Count(std::int64_t{12} * 2 * 2 * 1024 * 768 * (3072 - 100)));
}

TEST(Transformer, MemoryOfTraining) {
  const TrainingMemory memory = training_memory(gpt2, 4, mixed_precision());
  const Count p = 124'337'664;
  EXPECT_EQ(memory.parameters, Count(2) * p);
  EXPECT_EQ(memory.gradients, Count(2) * p);
  EXPECT_EQ(memory.master, Count(4) * p);
  EXPECT_EQ(memory.optimizer, Count(8) * p);
  const std::int64_t s = 1024, b = 4, h = 768, a = 12, layers = 12;
  EXPECT_EQ(memory.activations, Count(layers * s * b * (34 * h + 5 * a * s)));
  EXPECT_EQ(training_memory(gpt2, b, {}, Kept::no_scores).activations,
            Count(layers * s * b * 34 * h));
  EXPECT_EQ(training_memory(gpt2, b, {}, Kept::layer_inputs).activations,
            Count(layers * s * b * 2 * h));
  EXPECT_EQ(memory.logits, Count(4 * s * b * 50257));
  EXPECT_EQ(memory.total(), Count(16) * p + memory.activations + memory.logits);
  EXPECT_EQ(training_memory(gpt2, b, {}).master, 0);
}

TEST(Transformer, SizesOutsideTheirDomain) {
  for (auto member : {&Transformer::layers, &Transformer::width, &Transformer::heads,
                      &Transformer::vocab, &Transformer::context, &Transformer::mlp_width}) {
    Transformer bad = gpt2;
    bad.*member = -1;
    EXPECT_EQ(kind_of([&] { parameters(bad); }), ErrorKind::value);
  }
  Transformer bad = gpt2;
  bad.heads = 7;
  EXPECT_EQ(kind_of([&] { estimated_parameters(bad); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { forward_flops(gpt2, 0); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { training_memory(gpt2, -3, {}); }), ErrorKind::value);
  Transformer huge = gpt2;
  huge.width = huge.heads = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(kind_of([&] { parameters(huge); }), ErrorKind::overflow);
  huge = gpt2;
  huge.layers = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(kind_of([&] { forward_flops(huge, 1); }), ErrorKind::overflow);
}

}  // namespace
}  // namespace ein::napkin
