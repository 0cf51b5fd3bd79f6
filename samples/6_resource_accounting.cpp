// "PyTorch, resource accounting", lecture 2 of Stanford's CS336, section by section in ein: what it
// states is printed as ein finds it.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/call.hpp>
#include <ein/checkpoint_files.hpp>
#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/data.hpp>
#include <ein/ein.hpp>
#include <ein/hardware.hpp>
#include <ein/memory.hpp>
#include <ein/napkin.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>

namespace nn = ein::nn;
namespace optim = ein::optim;
using ein::DType;
using ein::Tensor;

namespace {

void section(const char* title) { std::printf("\n--- %s ---\n", title); }
void line(const char* what, const std::string& value) {
  std::printf("%-58s %s\n", what, value.c_str());
}
void line(const char* what, double value) { std::printf("%-58s %.10g\n", what, value); }
void line(const char* what, const ein::Count& value) { line(what, value.to_string()); }
void line(const char* what, const Tensor& value) { line(what, ein::to_string(value)); }

Tensor mean(const Tensor& x) { return ein::reduce(x, "... ->", ein::Reduction::mean); }

// --- what a run takes, on a napkin ---

void motivating_questions() {
  section("Motivating questions");
  const ein::Count flops = ein::napkin::training_flops(70'000'000'000, 15'000'000'000'000);
  const double peak = *ein::hardware_named("h100-sxm").peak(DType::bf16);
  const ein::napkin::Fleet fleet{.devices = 1024, .peak = peak, .mfu = 0.5};
  line("FLOPs to train 70e9 parameters on 15e12 tokens", flops.approximate());
  line("FLOPs of 1024 H100 in a day, at an MFU of 0.5", ein::napkin::flops_in(86400, fleet));
  line("days", ein::napkin::seconds_for(flops.approximate(), fleet) / 86400);
  const std::int64_t bytes = ein::napkin::bytes_per_parameter({});
  line("bytes a parameter takes with AdamW", static_cast<double>(bytes));
  line("the largest model on 8 H100 of 80e9 bytes",
       ein::napkin::largest_model(8, 80e9, static_cast<double>(bytes)));
}

// --- memory ---

void tensors_and_memory() {
  section("Memory of tensors");
  const Tensor x = ein::zeros({4, 8});
  line("zeros(4, 8): dtype", std::string(ein::name(x.dtype())));
  line("  elements", static_cast<double>(x.numel()));
  line("  bytes", static_cast<double>(x.nbytes()));
  line("a matrix of GPT-3's feed-forward layer, in MiB",
       12288.0 * 4 * 12288 * static_cast<double>(ein::size_of(DType::f32)) / (1 << 20));
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const ein::Finfo info = ein::finfo(dtype);
    std::printf("%-5s largest %-12.6g epsilon %-12.6g least normal %-12.6g\n",
                std::string(ein::name(dtype)).c_str(), info.max, info.eps, info.tiny);
  }
  line("1e-8 in f16", ein::full({}, 1e-8, DType::f16).item());
  line("1e-8 in bf16", ein::full({}, 1e-8, DType::bf16).item());
  line("70000 in f16", ein::full({}, 70000, DType::f16).item());
  const std::size_t before = ein::memory_allocated();
  const Tensor a = ein::zeros({32, 32}), b = ein::zeros({32, 32});
  line("memory that two tensors of 32 x 32 take",
       static_cast<double>(ein::memory_allocated() - before));
}

void views() {
  section("Views");
  const Tensor x = ein::arange(16).view({4, 4});
  line("strides of a 4 x 4 tensor", x.strides().to_string());
  const Tensor y = ein::tensor({{1, 2, 3}, {4, 5, 6}}), row = y.at({0}),
               column = y.at({ein::every, 1}), turned = ein::rearrange(y, "i j -> j i");
  line("row 0", row);
  line("column 1", column);
  line("as (3, 2)", y.view({3, 2}));
  y.at({0, 0}).fill(100);
  line("after y[0, 0] = 100, the transposed has the same memory", turned);
  line("  is it contiguous", turned.is_contiguous() ? "yes" : "no");
  try {
    turned.view({2, 3});
  } catch (const ein::Error& error) {
    line("  as (2, 3)", error.what());
  }
  line("  as (2, 3) of a copy", turned.contiguous().view({2, 3}));
}

// --- what can be computed ---

void operations() {
  section("Elementwise operations and products");
  const Tensor x = ein::tensor({1.0, 4.0, 9.0});
  line("squares", ein::pow(x, 2));
  line("roots", ein::sqrt(x));
  line("1 / roots", ein::rsqrt(x));
  line("triu(ones(3, 3), \"[i j]\")", ein::triu(ein::ones({3, 3}), "... [i j]"));
  const Tensor w = ein::ones({32, 2}), tokens = ein::ones({4, 8, 16, 32});
  line("(4, 8, 16, 32) by (32, 2)",
       ein::einsum(tokens, w, "batch seq h i, i o -> batch seq h o").shape().to_string());

  section("Named axes");
  const Tensor z = ein::ones({2, 3, 4});
  line("batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2",
       ein::einsum(z, z, "batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2")
           .shape()
           .to_string());
  line("... seq1 hidden, ... seq2 hidden -> ... seq1 seq2",
       ein::einsum(z, z, "... seq1 hidden, ... seq2 hidden -> ... seq1 seq2").shape().to_string());
  line("... hidden -> ..., the mean", ein::reduce(z, "... hidden -> ...", ein::Reduction::mean));
  using namespace ein::literals;
  const Tensor heads = ein::rearrange(ein::ones({2, 3, 8}),
                                      "... (heads hidden1) -> ... heads hidden1", "heads"_a = 2);
  const Tensor mixed =
      ein::einsum(heads, ein::ones({4, 4}), "... hidden1, hidden1 hidden2 -> ... hidden2");
  line("heads apart, each by a matrix, and together again",
       ein::rearrange(mixed, "... heads hidden2 -> ... (heads hidden2)").shape().to_string());
}

// --- FLOPs ---

ein::Count product_flops(std::int64_t b, std::int64_t d, std::int64_t k) {
  return ein::cost(ein::graph_of(ein::Operation::einsum, ein::runtime("b d, d k -> b k"),
                                 {{b, d}, {d, k}}))
      .matmul_only;
}

void flops() {
  section("FLOPs");
  line("a product of 16384 x 32768 x 8192, no tensor made", product_flops(16384, 32768, 8192));
  const std::int64_t batch = 1024, d = 256, k = 64;
  line("a product of 1024 x 256 x 64", product_flops(batch, d, k));

  // y = x w1 w2; what runs is counted.
  const auto count = [&](bool x_needs_gradient) {
    const Tensor x = ein::randn({batch, d}).requires_grad(x_needs_gradient),
                 w1 = ein::randn({d, d}).requires_grad(true),
                 w2 = ein::randn({d, k}).requires_grad(true);
    ein::CostScope forward;
    const Tensor loss = mean(
        ein::pow(ein::einsum(ein::einsum(x, w1, "b i, i o -> b o"), w2, "b i, i o -> b o"), 2));
    const ein::Count of_forward = forward.total().matmul_only;
    const ein::CostScope backward;
    loss.backward();
    return std::pair(of_forward, backward.total().matmul_only);
  };
  line("two layers, forward", count(false).first);
  line("  backward, where x needs a gradient too", count(true).second);
  line("  backward, as it runs where x needs none", count(false).second);

  section("Model FLOP/s utilization");
  const Tensor x = ein::randn({1024, 1024}), w = ein::randn({1024, 1024});
  const auto multiply = [&] { return ein::einsum(x, w, "b d, d k -> b k"); };
  const ein::CostScope scope;
  multiply();
  const ein::Cost cost = scope.total();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) multiply();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 10;
  const double rate = cost.matmul_only.approximate() / seconds;
  line("a product of 1024 x 1024 x 1024 here, FLOP/s", rate);
  line("  of what this machine can do", rate / *ein::measured_cpu().peak(DType::f32));
  line("  on an H100 in bf16, at least, us",
       1e6 * ein::roofline(cost, ein::hardware_named("h100-sxm"), DType::bf16).seconds);
  for (const char* device : {"a100-sxm-80gb", "h100-sxm"}) {
    std::printf("%-13s promises f32 %.4g, bf16 %.5g FLOP/s\n", device,
                *ein::hardware_named(device).peak(DType::f32, ein::TensorCores::no),
                *ein::hardware_named(device).peak(DType::bf16));
  }
}

// --- gradients ---

void gradients() {
  section("Gradients");
  const Tensor x = ein::tensor({1.0, 2.0, 3.0}), w = ein::ones({3}).requires_grad(true);
  const Tensor loss = 0.5 * ein::pow(ein::einsum(x, w, "i, i ->") - 5, 2);
  loss.backward();
  line("0.5 (x w - 5)^2", loss.detach());
  line("  its gradient for w", w.grad());
  line("  x has one", x.has_grad() ? "yes" : "no");
}

// --- models ---

void parameters() {
  section("Parameters");
  ein::manual_seed(0);
  const auto scale = [](const Tensor& y) {
    return ein::reduce(y, "o ->", ein::Reduction::std).item();
  };
  const std::int64_t in = 16384, out = 32;
  const Tensor x = ein::randn({in}), w = ein::randn({in, out});
  line("scale of 32 sums of 16384 products", scale(ein::einsum(x, w, "i, i o -> o")));
  line("  with weights / sqrt(16384)",
       scale(ein::einsum(x, w / std::sqrt(static_cast<double>(in)), "i, i o -> o")));

  const nn::Cruncher model(64, 2);
  for (const auto& [name, tensor] : model.state_dict())
    std::printf("  %-20s %s\n", name.c_str(), tensor.shape().to_string().c_str());
  line("parameters of a model of 2 layers of width 64",
       static_cast<double>(model.parameter_count()));
  line("  (8, 64) becomes", model(ein::randn({8, 64})).shape().to_string());
}

// --- data ---

void data(const std::filesystem::path& folder) {
  section("Data");
  const std::string path = (folder / "tokens.bin").string();
  ein::save_tokens(path, ein::Tokens(ein::arange(1, 11)), ein::TokenType::i32);
  const ein::Tokens tokens = ein::Tokens::open(path, ein::TokenType::i32);  // mapped, not read
  line("tokens of the file", tokens.read(0, tokens.size()));
  const ein::Batch batch = ein::get_batch(tokens, 2, 4, 0, 0);
  line("a batch of 2 x 4", batch.x);
  line("  and what should follow", batch.y);
}

// --- optimizers, written here ---

/// AdaGrad as the lecture writes it: s += g^2; p -= lr g / sqrt(s + 1e-5).
class LectureAdaGradRule : public optim::Rule {
 public:
  LectureAdaGradRule() : Rule("LectureAdaGrad", {{"sum_of_squares", 0}}) {}
  std::vector<Tensor> update(const Values& v) const override {
    const Tensor s = v.state[0] + v.g * v.g;
    return {v.p - v.numbers[0] * v.g / ein::sqrt(s + 1e-5), s};
  }
};
struct LectureAdaGrad : optim::Optimizer {
  LectureAdaGrad(const optim::ParameterGroups& parameters, double learning_rate)
      : Optimizer(parameters, learning_rate, 0, std::make_unique<LectureAdaGradRule>()) {}
};

void optimizers() {
  section("Optimizers");
  ein::manual_seed(0);
  const std::int64_t batch = 2, width = 4, layers = 2;
  const nn::Cruncher model(width, layers);
  LectureAdaGrad optimizer(model.parameters(), 0.01);
  auto step = ein::compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = ein::mse_loss(model(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  });
  const Tensor x = ein::randn({batch, width}), y = ein::tensor({4.0, 5.0});
  const Tensor first = step(x, y);
  line("loss before a step of our own AdaGrad", first);
  line("  after it", step(x, y));
  const std::int64_t n = model.parameter_count(), activations = batch * width * layers;
  line("parameters", static_cast<double>(n));
  line("bytes: 4 (parameters + activations + gradients + state)",
       static_cast<double>(4 * (n + activations + n + n)));
  line("FLOPs of a step, estimated as 6 B N", static_cast<double>(6 * batch * n));
  line("  of its products, counted", step.cost().matmul_only);
}

// --- a training loop ---

/// The mean squared errors of ten steps.
std::vector<double> train() {
  ein::manual_seed(42);
  const Tensor true_weights = ein::arange(16).to(DType::f32);
  const nn::Cruncher model(16, 0);
  optim::SGD optimizer(model.parameters(), {.learning_rate = 0.01});
  std::vector<double> losses;
  for (int i = 0; i < 10; ++i) {
    const Tensor x = ein::randn({4, 16}), y = ein::einsum(x, true_weights, "b d, d -> b");
    optimizer.zero_grad();
    const Tensor loss = ein::mse_loss(model(x), y);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item());
  }
  return losses;
}

void training_loop() {
  section("Training loop");
  const std::vector<double> losses = train();
  for (std::size_t i = 0; i < losses.size(); ++i)
    std::printf("step %zu  loss %.4f\n", i, losses[i]);
  line("the same seed gives the same run", losses == train() ? "yes" : "no");
}

void checkpointing(const std::filesystem::path& folder) {
  section("Checkpoints");
  const nn::Cruncher model(64, 3), other(64, 3);
  LectureAdaGrad optimizer(model.parameters(), 0.01), other_optimizer(other.parameters(), 0.01);
  ein::mse_loss(model(ein::randn({8, 64})), ein::randn({8})).backward();
  optimizer.step();
  ein::save_safetensors((folder / "model.safetensors").string(), model.state_dict());
  ein::save_safetensors((folder / "optimizer.safetensors").string(), optimizer.state_dict());
  other.load_state_dict(ein::load_safetensors((folder / "model.safetensors").string()).tensors);
  other_optimizer.load_state_dict(
      ein::load_safetensors((folder / "optimizer.safetensors").string()).tensors);
  const Tensor x = ein::randn({8, 64});
  line("parameters saved and loaded", static_cast<double>(model.parameter_count()));
  line("  the loaded model computes the same",
       model(x).to_vector<float>() == other(x).to_vector<float>() ? "yes" : "no");
}

void mixed_precision() {
  section("Mixed precision");
  const nn::Cruncher model(64, 2);
  const Tensor x = ein::randn({8, 64});
  const ein::Autocast scope(DType::bf16);
  const Tensor y = model(x), loss = ein::mse_loss(y, ein::zeros({8}));
  loss.backward();
  line("products give", std::string(ein::name(y.dtype())));
  line("losses", std::string(ein::name(loss.dtype())));
  line("gradients of parameters", std::string(ein::name(model.parameters()[0].grad().dtype())));
}

}  // namespace

int main() {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "ein_resource_accounting";
  std::filesystem::create_directories(folder);
  motivating_questions();
  tensors_and_memory();
  views();
  operations();
  flops();
  gradients();
  parameters();
  data(folder);
  optimizers();
  training_loop();
  checkpointing(folder);
  mixed_precision();
  std::filesystem::remove_all(folder);
}
