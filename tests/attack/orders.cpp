#include "orders.hpp"

#include <exception>

#include "support/derivative_orders.hpp"
#include "support/tensor_values.hpp"

namespace ein::attack {
namespace {

bool is_differentiated(const Input& input) { return input.dtype == DType::f64; }

/// One output of a program of its arguments of f64; the others are as they are.
class OneOutput {
 public:
  OneOutput(const Program& program, int output) : program_(program), output_(output) {}

  Tensor operator()(const test::Tensors& differentiated) const {
    std::vector<Tensor> arguments, states;
    std::size_t next = 0;
    for (const Input& input : program_.inputs) {
      arguments.push_back(is_differentiated(input)
                              ? differentiated[next++]
                              : test::make_tensor(input.runs[0], input.shape, input.dtype));
    }
    return values_of_steps(program_, arguments, states)[static_cast<std::size_t>(output_)];
  }

 private:
  const Program& program_;
  int output_;
};

}  // namespace

OrdersVerdict check_orders(const Program& program) {
  OrdersVerdict verdict;
  test::Tensors inputs, leaves;
  for (const Input& input : program.inputs) {
    if (!is_differentiated(input)) continue;
    inputs.push_back(test::make_tensor(input.runs[0], input.shape, input.dtype));
    leaves.push_back(inputs.back().clone().requires_grad(true));
  }
  Random random(program.seed);
  try {
    for (const int output : program.outputs) {
      const OneOutput f(program, output);
      const Tensor value = f(leaves);
      if (value.dtype() != DType::f64 || !value.requires_grad()) continue;
      const test::OrdersCompared found = test::compare_orders(f, inputs, random, 1e-4, true);
      verdict.elements += found.elements;
      if (!found.wrong.empty() && verdict.wrong.empty())
        verdict.wrong = "v" + std::to_string(output) + ": gradients of " + found.wrong;
    }
  } catch (const std::exception& error) {
    verdict.wrong = std::string("an exception: ") + error.what();
  }
  return verdict;
}

}  // namespace ein::attack
