// Calls that reach every engine and every state that the library keeps, for tests of what may
// happen between two calls: an exit, a fork, a thread's end.
#pragma once

#include <cmath>
#include <exception>
#include <string>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/checkpoint_files.hpp>
#include <ein/compile.hpp>
#include <ein/complex.hpp>
#include <ein/cost.hpp>
#include <ein/data.hpp>
#include <ein/ein.hpp>
#include <ein/optim.hpp>
#include <ein/safetensors.hpp>

namespace ein::test {

struct NamedCheck {
  const char* name;
  bool (*holds)(const std::string& folder);  // of files
};

inline double total(const Tensor& x) { return reduce(x.to(DType::f64), "... ->", "sum").item(); }

inline const Tensor& kept_tensor() {
  static const Tensor* const kept = new Tensor(full({64, 64}, 1.0));
  return *kept;
}

/// Compiled once, by whoever calls it first.
inline Tensor kept_function(const Tensor& x) {
  const auto body = [](const Tensor& y) { return softmax(y * 2.0, "b [s]"); };
  static auto* const compiled = new auto(compile(body));
  return (*compiled)(x);
}

/// Each holds again and again, at any time, in any order.
inline const NamedCheck all_calls[] = {
    {"product in blocks",
     [](const std::string&) {
       return total(einsum(full({300, 300}, 2.0), ones({300, 300}), "a k, k b -> a b")) ==
              2.0 * 300 * 300 * 300;
     }},
    {"product in f64",
     [](const std::string&) {
       const Tensor x = ones({150, 150}, DType::f64);
       return total(matmul(x, x)) == 150.0 * 150 * 150;
     }},
    {"product in bf16",
     [](const std::string&) {
       const Tensor x = ones({160, 160}, DType::bf16);
       return total(matmul(x, x)) == 160.0 * 160 * 160;
     }},
    {"few rows by weights",
     [](const std::string&) {
       bool holds = true;
       for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
         const Tensor x = ones({3, 512}, dtype), w = ones({512, 512}, dtype);
         holds &= total(einsum(x, w, "b i, o i -> b o")) == 3.0 * 512 * 512;
         holds &= total(einsum(x, w, "b i, i o -> b o")) == 3.0 * 512 * 512;
       }
       return holds;
     }},
    {"product of integers",
     [](const std::string&) {
       const Tensor x = full({40, 40}, 3, DType::i64);
       return total(matmul(x, x)) == 9.0 * 40 * 40 * 40;
     }},
    {"tiny products",
     [](const std::string&) {
       const Tensor x = ones({500, 4, 4});
       return total(einsum(x, x, "b i k, b k j -> b i j")) == 500.0 * 4 * 4 * 4;
     }},
    {"sums",
     [](const std::string&) {
       return total(ones({700, 300})) == 700.0 * 300;
     }},
    {"strips",
     [](const std::string&) {
       return total(erf(zeros({3000}, DType::f64))) == 0 &&
              total(full({3000}, 7, DType::i32) * full({3000}, 2, DType::i32)) == 42000;
     }},
    {"all threads",
     [](const std::string&) { return total(exp(zeros({1 << 19})) + 1.0) == 2.0 * (1 << 19); }},
    {"norms",
     [](const std::string&) {
       const Tensor x = softmax(kept_tensor(), "b [s]");
       return std::abs(total(x) - 64) < 1e-3 &&
              std::abs(total(layer_norm(x, ones({64}), zeros({64}), "b [s]"))) < 1;
     }},
    {"scans and sorts",
     [](const std::string&) {
       const Tensor x = arange(1000.0);
       return cumsum(x, "[n]").at({999}).item() == 499500 &&
              sort(-x, "[n]").values.at({0}).item() == -999 && argmax(x, "[n]").item() == 999;
     }},
    {"gathers and scatters",
     [](const std::string&) {
       using namespace ein::literals;
       const Tensor x = arange(100.0), where = arange(100);
       return total(gather(x, where, "[n], i -> i")) == 4950 &&
              total(scatter_add(x, where, "i, i -> [n]", "n"_a = 100)) == 4950;
     }},
    {"rearranges",
     [](const std::string&) {
       return total(rearrange(ones({60, 70, 5}), "a b c -> c (b a)")) == 60.0 * 70 * 5;
     }},
    {"complex numbers",
     [](const std::string&) {
       const Tensor x = ones({8, 8}, DType::c64);
       return real(einsum(x, x, "a k, k b -> a b")).at({0, 0}).item() == 8;
     }},
    {"functions of matrices",
     [](const std::string&) { return std::abs(total(inverse(eye(16), "[r c]")) - 16) < 1e-4; }},
    {"gradients",
     [](const std::string&) {
       const Tensor w = full({64, 8}, 0.5).requires_grad(true);
       reduce(matmul(kept_tensor(), w), "b n ->", "sum").backward();
       return total(w.grad()) == 64.0 * 64 * 8;
     }},
    {"recomputation",
     [](const std::string&) {
       const Tensor w = full({64}, 0.5).requires_grad(true);
       const Tensor y = checkpoint([](const Tensor& v) { return v * v; }, w);
       reduce(y, "n ->", "sum").backward();
       return total(w.grad()) == 64;
     }},
    {"a compiled function",
     [](const std::string&) { return std::abs(total(kept_function(kept_tensor())) - 64) < 1e-3; }},
    {"a new compiled function",
     [](const std::string&) {
       auto f = compile([](const Tensor& x) { return exp(x) * 2.0 + 1.0; });
       return total(f(zeros({32}))) == 96;
     }},
    {"an optimizer",
     [](const std::string&) {
       const Tensor w = ones({64}).requires_grad(true);
       optim::SGD sgd({w}, {.learning_rate = 0.5});
       reduce(w, "n ->", "sum").backward();
       sgd.step();
       return total(w) == 32;
     }},
    {"random numbers",
     [](const std::string&) {
       const Tensor x = rand({1000}), y = randn({1000});
       return total(x) > 300 && std::abs(total(y)) < 300;
     }},
    {"errors",
     [](const std::string&) {
       try {
         rearrange(ones({2, 3}), runtime("a b -> a c"));
         return false;
       } catch (const Error& error) {
         return std::string(error.what()).find("a b -> a c") != std::string::npos;
       }
     }},
    {"scopes",
     [](const std::string&) {
       const CostScope scope;
       const CostLabel label("part");
       const NoGrad no_grad;
       const Autocast autocast(DType::bf16);
       const ThreadLimit limit(1);
       const Tensor y = matmul(kept_tensor(), kept_tensor());
       return total(y) == 64.0 * 64 * 64 && !scope.entries().empty() && num_threads() == 1;
     }},
    {"set_num_threads",
     [](const std::string&) {
       set_num_threads(3);
       const bool holds = total(ones({500, 1000})) == 500.0 * 1000;
       set_num_threads(2);
       return holds;
     }},
    {"npy",
     [](const std::string& folder) {
       save_npy(folder + "/x.npy", kept_tensor());
       return total(load_npy(folder + "/x.npy")) == 64.0 * 64;
     }},
    {"safetensors",
     [](const std::string& folder) {
       save_safetensors(folder + "/x.safetensors", {{"x", kept_tensor()}});
       return total(load_safetensors(folder + "/x.safetensors").tensors.at("x")) == 64.0 * 64;
     }},
    {"checkpoints",
     [](const std::string& folder) {
       save_checkpoint(folder + "/checkpoints", 1, {{"x", kept_tensor()}});
       return total(load_checkpoint(folder + "/checkpoints").tensors.at("x")) == 64.0 * 64;
     }},
    {"tokens",
     [](const std::string& folder) {
       save_tokens(folder + "/tokens", Tokens(zeros({100}, DType::u8)), TokenType::u16);
       return Tokens::open(folder + "/tokens", TokenType::u16).range().second == 0;
     }},
};

/// The first that does not hold or throws, and what; "" if none.
inline std::string failing_call(const std::string& folder) {
  for (const NamedCheck& check : all_calls) {
    try {
      if (!check.holds(folder)) return std::string(check.name) + " gives something else";
    } catch (const std::exception& error) {
      return std::string(check.name) + ": " + error.what();
    }
  }
  return "";
}

}  // namespace ein::test
