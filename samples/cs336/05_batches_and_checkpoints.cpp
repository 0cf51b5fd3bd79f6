// Assignment 1, sections 4 and 5: batches of a token file that is mapped, and checkpoints of
// weights, moments and step.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/checkpoint_files.hpp>
#include <ein/data.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>

namespace fs = std::filesystem;
namespace nn = ein::nn;
using ein::Tensor;

void batches(const fs::path& folder) {
  const std::string path = (folder / "tokens.u16").string();
  ein::save_tokens(path, ein::Tokens(ein::arange(100)), ein::TokenType::u16);
  const ein::Tokens tokens = ein::Tokens::open(path, ein::TokenType::u16);
  std::printf("%lld tokens in %lld bytes\n", static_cast<long long>(tokens.size()),
              static_cast<long long>(fs::file_size(path)));
  std::vector<int> drawn(93);  // starts are 0 ... 100 - 7 - 1
  bool shifted = true;
  for (std::uint64_t number = 0; number < 1000; ++number) {
    const ein::Batch batch = ein::get_batch(tokens, 32, 7, 0, number);
    const auto x = batch.x.to_vector<std::int64_t>(), y = batch.y.to_vector<std::int64_t>();
    for (std::size_t i = 0; i < x.size(); ++i) shifted = shifted && y[i] == x[i] + 1;
    for (std::size_t row = 0; row < 32; ++row) ++drawn[static_cast<std::size_t>(x[7 * row])];
  }
  int within = 0;
  const double mean = 32000.0 / 93, sigma = std::sqrt(mean * (1 - 1.0 / 93));
  for (const int count : drawn) within += std::abs(count - mean) < 5 * sigma;
  std::printf(
      "1,000 batches of (32, 7): targets are %s; %d of 93 starts within 5 sigma of uniform\n",
      shifted ? "the next tokens" : "others", within);
}

struct Run {
  nn::Sequential model;
  std::unique_ptr<ein::optim::AdamW> optimizer;
  Run() {
    model.add<nn::Linear>(100, 200);
    model.add<nn::Function>(ein::relu);
    model.add<nn::Linear>(200, 100);
    model.add<nn::Function>(ein::relu);
    model.add<nn::Linear>(100, 10);
    optimizer = std::make_unique<ein::optim::AdamW>(model.parameters());
  }
  double step(const Tensor& x, const Tensor& y) {
    optimizer->zero_grad();
    const Tensor loss = ein::mse_loss(model(x), y);
    loss.backward();
    optimizer->step();
    return loss.item();
  }
};

void checkpoints(const fs::path& folder) {
  const Tensor x = ein::randn({16, 100}), y = ein::randn({16, 10});
  Run first, second;
  for (int i = 0; i < 10; ++i) first.step(x, y);
  ein::StateDict state = first.model.state_dict("model.");
  for (const auto& [name, tensor] : first.optimizer->state_dict())
    state["optimizer." + name] = tensor;
  const std::string path = ein::save_checkpoint((folder / "run").string(), 10, state);
  const ein::Checkpoint saved = ein::load_checkpoint((folder / "run").string());
  second.model.load_state_dict(saved.tensors, {.strict = true, .prefix = "model."});
  ein::StateDict moments;
  for (const auto& [name, tensor] : saved.tensors)
    if (name.starts_with("optimizer.")) moments[name.substr(10)] = tensor;
  second.optimizer->load_state_dict(moments);
  std::printf("%s has %zu tensors of step %lld\n", fs::path(path).filename().c_str(),
              saved.tensors.size(), static_cast<long long>(saved.step));
  bool same = true;
  for (int i = 0; i < 5; ++i) same = first.step(x, y) == second.step(x, y) && same;
  std::printf("five steps more have %s\n", same ? "the same losses, bit for bit" : "other losses");
}

int main() {
  const fs::path folder = fs::temp_directory_path() / "ein_cs336_checkpoints";
  fs::create_directories(folder);
  batches(folder);
  checkpoints(folder);
  fs::remove_all(folder);
}
