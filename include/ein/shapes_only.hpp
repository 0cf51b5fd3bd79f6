// ShapesOnly: what a model of any size has and costs, in no memory.
#pragma once

#include <memory>
#include <span>

#include <ein/cost.hpp>
#include <ein/graph.hpp>
#include <ein/tensor.hpp>

namespace ein {

namespace engine {
class Trace;
}

/// While it lives, what this thread makes and computes are tensors that have shapes alone: modules
/// take no memory for parameters, and calls are recorded instead of run. So the parameters and the
/// cost of a decoder of 405B parameters are known anywhere:
///
///     ein::ShapesOnly shapes;
///     const nn::Decoder model(nn::llama3_405b());
///     model.parameter_count();
///     shapes.cost(model(ein::empty({1, 8192}, ein::DType::i64))).matmul_only;
///
/// Scopes nest with no other trace: inside of a compiled function one is an Error of kind `value`.
/// Asking for an element is one too, and using such a tensor after the scope; what has a shape may
/// be asked for it. A tensor from outside can be used, and is not written to.
class ShapesOnly {
 public:
  ShapesOnly();
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;

  /// The operations that these results need, with parameters as inputs; gradients are results too.
  Graph graph(std::span<const Tensor> results) const;
  Graph graph(const Tensor& result) const { return graph({&result, 1}); }
  /// What they cost: cost(graph(results)).
  Cost cost(std::span<const Tensor> results) const { return ein::cost(graph(results)); }
  Cost cost(const Tensor& result) const { return cost({&result, 1}); }

 private:
  std::unique_ptr<engine::Trace> trace_;
};

}  // namespace ein
