// Operations that are compositions of others, and their gradients, as CUDA C++: compiled for the
// host and run there, against the interpreter; or on the GPU whose number EIN_TEST_DEVICE is.
#include <cmath>
#include <string>
#include <vector>

#include <ein/complex.hpp>
#include <ein/ein.hpp>
#include "passes/complex.hpp"
#include "passes/contraction_order.hpp"
#include "passes/simplify.hpp"
#include "support/derivative_orders.hpp"
#include "support/emitted_cases.hpp"

namespace ein::test {
namespace {

class EmitCompositionsTest : public EmitTest {
 protected:
  /// f, and the gradient of its first argument, of these arguments.
  void add_both(const OfTensors& f, const Tensors& arguments) {
    add_call(f, arguments);
    const Tensor weights = values_of(f(arguments).shape(), f(arguments).dtype());
    const auto gradient = [=](const Tensors& x) {
      Tensors all = x;
      all[0] = x[0].detach();
      all[0].requires_grad(true);
      const Tensors leaves{all[0]};
      return gradients(f({all.begin(), all.end() - 1}), all.back(), leaves).front();
    };
    Tensors all = arguments;
    all.push_back(weights);
    add_call(gradient, all);
  }

  Tensor values_of(const Shape& shape, DType dtype) {
    if (!is_complex(dtype)) return normal_values(random_, shape).to(dtype);
    return complex(normal_values(random_, shape), normal_values(random_, shape)).to(dtype);
  }

 private:
  void add_call(const OfTensors& f, const Tensors& arguments) {
    Traced call = traced(f, arguments);
    Tensors inputs = arguments;
    inputs.insert(inputs.end(), call.captured.begin(), call.captured.end());
    bool is_single = true;
    for (Tensor& x : inputs) {
      is_single &= real_dtype(x.dtype()) != DType::f64;
      if (is_complex(x.dtype())) x = view_as_real(x.contiguous());
    }
    const Graph graph = without_complex(call.graph, "test");
    const double error = is_single ? 2e-4 : 1e-10;
    // The interpreter takes what the calls say, before any other pass.
    add(order_contractions(simplify(graph)), inputs, {error, error}).graph = graph;
  }

  Random random_{suite_seed()};
};

TEST_F(EmitCompositionsTest, OfRealNumbers) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    if (!is_wanted(static_cast<std::size_t>(dtype))) continue;
    const Tensor x = values_of({7, 33}, dtype), y = values_of({7, 33}, dtype);
    const Tensor with_nan = x.clone();
    with_nan.at({slice(0, 7, 2), slice(1, 33, 5)}).fill(NAN);
    for (const std::string_view name : detail::reduction_names) {
      const Reduction reduction = *parse_reduction(name);
      if (reduction == Reduction::any || reduction == Reduction::all) continue;
      const Tensor& of = name.starts_with("nan") ? with_nan : x;
      add_both([=](const Tensors& t) { return reduce(t[0], "a b -> a", reduction); }, {of});
      add_both([=](const Tensors& t) { return reduce(t[0], "a b -> b", reduction); }, {of});
    }
    add_both([](const Tensors& t) { return logaddexp(t[0], t[1]); }, {x, y});
    add_both([](const Tensors& t) { return logcumsumexp(t[0], "a [b]"); }, {x});
    add_both([](const Tensors& t) { return logcumsumexp(t[0], "[a] b"); }, {x});
    add_both([](const Tensors& t) { return cumprod(t[0], "a [b]"); }, {x});
    add_both([](const Tensors& t) { return cumprod(t[0], "[a] b"); }, {x});
    add_both([](const Tensors& t) { return cummax(t[0], "a [b]"); }, {x});
    add_both([](const Tensors& t) { return quantile(t[0], "a [b]", 0.3); }, {x});
    add_both([](const Tensors& t) { return rms_norm(t[0], "a [b]"); }, {x});
  }
  check_all();
}

TEST_F(EmitCompositionsTest, OfComplexNumbers) {
  for (const DType dtype : {DType::c64, DType::c128}) {
    if (!is_wanted(static_cast<std::size_t>(dtype))) continue;
    const Tensor z = values_of({5, 12}, dtype);
    for (const char* const name :
         {"sum", "mean", "prod", "var", "std", "sample_var", "sample_std"}) {
      const Reduction reduction = *parse_reduction(name);
      add_both([=](const Tensors& t) { return reduce(t[0], "a b -> a", reduction); }, {z});
      add_both([=](const Tensors& t) { return reduce(t[0], "a b -> b", reduction); }, {z});
    }
    add_both([](const Tensors& t) { return cumsum(t[0], "a [b]"); }, {z});
    add_both([](const Tensors& t) { return cumprod(t[0], "a [b]"); }, {z});
    add_both([](const Tensors& t) { return cumprod(t[0], "[a] b"); }, {z});
  }
  check_all();
}

}  // namespace
}  // namespace ein::test
