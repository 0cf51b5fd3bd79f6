// Braces as CUDA C++: compiled for the host and run there, against the interpreter, which reads
// them as they are; or on the GPU whose number EIN_TEST_DEVICE is.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "autograd/vjp.hpp"
#include "passes/contraction_order.hpp"
#include "passes/copy_maps.hpp"
#include "passes/simplify.hpp"
#include "passes/windows.hpp"
#include "support/attention_cases.hpp"
#include "support/emitted_cases.hpp"
#include "support/random_windows.hpp"
#include "support/window_forms.hpp"

namespace ein::test {
namespace {

class EmitWindowsTest : public EmitTest {
 protected:
  static std::vector<Shape> shapes_of(const WindowCase& windows) {
    std::vector<Shape> shapes;
    for (const auto& dims : windows.inputs) shapes.push_back(shape_of(dims));
    return shapes;
  }
  static Shape shape_of(const std::vector<WindowDim>& dims) {
    Shape shape;
    for (const WindowDim& dim : dims) shape.push_back(dim.size);
    return shape;
  }
  static Graph graph_of_windows(Operation op, const WindowCase& windows, DType dtype,
                                Reduction reduction = Reduction::sum) {
    std::vector<AxisSize> sizes;
    const auto named = windows.named_sizes();
    for (const auto& [name, size] : named) sizes.push_back({name, size});
    return graph_of_pattern(op, windows.text(), shapes_of(windows), dtype, reduction, sizes);
  }
  /// What the passes make of a graph; each result has a kernel.
  static Graph of_kernels(const Graph& graph) {
    return copied(copy_maps(order_contractions(simplify(without_windows(graph)))));
  }
  void add_windows(const Graph& graph, const std::vector<Tensor>& inputs,
                   const Tolerance& tolerance = {}) {
    add(of_kernels(graph), inputs, tolerance).graph = graph;
  }
  std::vector<Tensor> random_tensors(const WindowCase& windows, DType dtype, Random& random) {
    std::vector<Tensor> tensors;
    for (const Shape& shape : shapes_of(windows))
      tensors.push_back(random_tensor(shape, dtype, random));
    return tensors;
  }

  /// Calls f(windows, random) for each seed.
  template <class F>
  static void for_each_case(unsigned count, std::size_t most_operands, bool is_sum, F&& f) {
    for_seeds(count, [&](unsigned seed) {
      std::mt19937 windows(seed);
      Random random(suite_seed() + seed);
      f(random_windows(windows, 1 + seed % most_operands, is_sum), random);
    });
  }
};

TEST_F(EmitWindowsTest, SumsOfRandomWindows) {
  for_each_case(300, 3, true, [&](const WindowCase& windows, Random& random) {
    // Products of three factors are exact in wide types alone.
    constexpr DType wide[] = {DType::f32, DType::f64, DType::i64};
    const DType dtype = windows.inputs.size() > 2 ? wide[below(random, 3)] : random_dtype(random);
    add_windows(graph_of_windows(Operation::einsum, windows, dtype),
                random_tensors(windows, dtype, random));
  });
  check_all();
}

TEST_F(EmitWindowsTest, ReductionsOfRandomWindows) {
  for_each_case(300, 1, false, [&](const WindowCase& windows, Random& random) {
    constexpr Reduction reductions[] = {Reduction::sum,  Reduction::max, Reduction::min,
                                        Reduction::mean, Reduction::any, Reduction::all};
    const Reduction reduction = reductions[below(random, std::size(reductions))];
    DType dtype = random_dtype(random);
    if (reduction == Reduction::mean && !is_floating(dtype)) dtype = DType::f32;
    // Of a window that is wholly outside there is no greatest.
    std::vector<int> count(static_cast<std::size_t>(WindowCase::elements(windows.output)), 0);
    windows.for_each_tuple([&](const std::vector<std::int64_t>&, std::int64_t to) {
      ++count[static_cast<std::size_t>(to)];
    });
    const bool is_extreme = reduction == Reduction::max || reduction == Reduction::min;
    if (is_extreme && std::count(count.begin(), count.end(), 0) > 0) return;
    const double error = reduction == Reduction::mean ? 1e-6 : 0;
    add_windows(graph_of_windows(Operation::reduce, windows, dtype, reduction),
                random_tensors(windows, dtype, random), {error, error});
  });
  check_all();
}

TEST_F(EmitWindowsTest, GradientsOfRandomWindows) {
  for_each_case(200, 2, true, [&](const WindowCase& windows, Random& random) {
    const DType dtype = below(random, 2) == 0 ? DType::f32 : DType::f64;
    const Graph graph = graph_of_windows(Operation::einsum, windows, dtype);
    const autograd::Vjp vjp =
        autograd::vjp(graph, std::vector<bool>(windows.inputs.size(), true), {true});
    const std::vector<Tensor> inputs = random_tensors(windows, dtype, random);
    std::vector<Tensor> given;
    for (const std::size_t i : vjp.needs) given.push_back(inputs[i]);
    given.push_back(random_tensor(shape_of(windows.output), dtype, random));
    add_windows(vjp.graph, given);
  });
  check_all();
}

/// As a compiled function has them, and their gradients. Neighbours differ in the dtype, so that of
/// each form some have sizes that are arguments, and some do not.
TEST_F(EmitWindowsTest, OfPrograms) {
  Random random(suite_seed());
  for (const WindowForm& form : window_forms({.b = 2, .side = 7, .c = 4, .o = 6})) {
    for (const bool is_gradient : {false, true}) {
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
        if (!is_wanted(static_cast<std::size_t>(dtype))) continue;
        std::vector<Tensor> arguments;
        for (const Shape& shape : form.shapes)
          arguments.push_back(EmitTest::random_tensor(shape, dtype, random));
        if (is_gradient)
          arguments.push_back(
              EmitTest::random_tensor(form.function(arguments).shape(), dtype, random));
        const CompiledProgram c = compiled(
            arguments, [&](std::span<const Tensor> x) { return run_form(form, x, is_gradient); },
            [](Program&, std::span<const int>) {});
        const double error = dtype == DType::f64 ? 1e-13 : dtype == DType::f32 ? 1e-5 : 0.02;
        add_windows(c.graph, c.inputs, {error, error});
      }
    }
  }
  check_all();
}

}  // namespace
}  // namespace ein::test
