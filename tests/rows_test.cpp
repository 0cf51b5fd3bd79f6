// Kernels over rows and down columns: random nests against plain loops in double precision.
#include "cpu/rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <numeric>
#include <random>
#include <vector>

#include <ein/parallel.hpp>
#include "support/exact_steps.hpp"
#include "support/row_code.hpp"
#include "tensor/convert.hpp"

namespace ein::host {
namespace {

using Operand = LoopNest::Operand;

class RandomNest {
 public:
  /// With one long axis, which is reduced, or with short ones.
  RandomNest(std::mt19937& random, bool is_long) : random_(random) {
    const int rank = is_long ? pick(1, 2) : pick(1, 4);
    for (int a = 0; a < rank; ++a) {
      nest_.axes.push_back({std::string(1, static_cast<char>('a' + a)), a > 0 ? pick(2, 18) : is_long ? pick(33000, 80000) : pick(20, 600)});
    }
    nest_.axes[0].reduced = is_long;
    std::shuffle(nest_.axes.begin(), nest_.axes.end(), random_);
    if (is_long || pick(0, 2) > 0) {
      if (!is_long) nest_.axes[static_cast<std::size_t>(pick(0, rank - 1))].reduced = true;
      // A window of two axes.
      if (rank > 2 && pick(0, 2) == 0) {
        for (LoopNest::NestAxis& axis : nest_.axes) axis.reduced = axis.size < 20;
        for (LoopNest::NestAxis& axis : nest_.axes) axis.size = axis.reduced ? pick(1, 3) : axis.size;
      }
      nest_.combine = std::array{Combine::sum, Combine::sum, Combine::max, Combine::min}[static_cast<std::size_t>(pick(0, 3))];
    }
    // All with the same axis innermost, as kernels over rows want it; mostly.
    std::vector<std::size_t> order(nest_.axes.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    const int inputs = pick(1, 3);
    for (int i = 0; i < inputs; ++i) {
      if (pick(0, 3) == 0) std::shuffle(order.begin(), order.end() - 1, random_);
      nest_.inputs.push_back(add_operand(order, pick(0, 3) == 0 && i > 0, false));
    }
    nest_.output = add_operand(order, false, true);
    const Ex x = Ex::input(0), y = Ex::input(inputs > 1 ? 1 : 0), z = Ex::input(inputs > 2 ? 2 : 0);
    const int axis = pick(0, rank - 1);
    const Ex bodies[] = {x, x * y, (x - y) * z + x, Ex::apply(ScalarOp::exp, Ex::apply(ScalarOp::neg, Ex::apply(ScalarOp::abs, x))) * y,
                         Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::lt, Ex::index(axis), Ex(20.0)), x, y * z),
                         Ex::apply(ScalarOp::tanh, x + y) / (z * z + 1.0)};
    nest_.body = bodies[pick(0, 5)];
    if (nest_.combine && pick(0, 1) == 0) {
      nest_.epilogue = Ex::input(0) * 0.5 + 2.0;
      if (pick(0, 1) == 0) {
        while (nest_.inputs.size() < 2) nest_.inputs.push_back(add_operand(order, false, false));
        nest_.inputs.push_back(add_operand(order, false, true));
        nest_.epilogue = Ex::input(0) * Ex::input(static_cast<int>(nest_.inputs.size()) - 1) + 1.0;
      }
    }
  }

  const LoopNest& nest() const { return nest_; }

  void check(const Kernel& kernel) {
    std::vector<std::vector<std::byte>> results;
    for (int threads : {1, 2}) {
      set_num_threads(threads);
      std::vector<std::byte*> buffers;
      for (auto& bytes : memory_) buffers.push_back(bytes.data());
      auto& out = memory_[static_cast<std::size_t>(nest_.output.buffer)];
      std::fill(out.begin(), out.end(), std::byte{0});
      std::vector<std::byte> workspace(kernel.workspace_bytes(threads) + 64);
      auto* const aligned = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(workspace.data()) + 63) / 64 * 64);
      kernel.run({buffers, aligned, {}, threads});
      results.push_back(out);
    }
    ASSERT_EQ(results[0], results[1]) << "threads change the result of\n" << to_string(nest_);
    check_points();
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  Operand add_operand(const std::vector<std::size_t>& order, bool repeats, bool is_result) {
    const DType dtype = pick(0, 4) == 0 ? DType::bf16 : DType::f32;
    Operand operand{.buffer = static_cast<int>(memory_.size()), .dtype = dtype, .offset = pick(0, 5), .strides = std::vector<std::int64_t>(nest_.axes.size(), 0)};
    std::int64_t stride = !is_result && pick(0, 5) == 0 ? 2 : 1;
    for (std::size_t k = order.size(); k-- > 0;) {
      const LoopNest::NestAxis& axis = nest_.axes[order[k]];
      if ((is_result && axis.reduced) || (repeats && pick(0, 1) == 0)) continue;
      operand.strides[order[k]] = stride;
      stride *= axis.size + (pick(0, 3) == 0 ? pick(1, 3) : 0);
    }
    const std::int64_t elements = operand.offset + stride;
    std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * size_of(dtype));
    for (std::int64_t i = 0; i < elements; ++i) {
      const float value = std::uniform_real_distribution<float>(-1, 1)(random_);
      store_from(&value, 1, bytes.data() + static_cast<std::size_t>(i) * size_of(dtype), dtype, 1);
    }
    memory_.push_back(std::move(bytes));
    return operand;
  }

  double element(const Operand& operand, const std::vector<std::int64_t>& at) const {
    std::int64_t place = operand.offset;
    for (std::size_t a = 0; a < at.size(); ++a) place += operand.strides[a] * at[a];
    float value;
    load_as(memory_[static_cast<std::size_t>(operand.buffer)].data() + static_cast<std::size_t>(place) * size_of(operand.dtype), operand.dtype, 1, &value, 1);
    return value;
  }

  double evaluate(const ScalarExpr& expr, const std::vector<std::int64_t>& at, const double* combined) const {
    std::vector<double> values;
    for (const ScalarStep& step : expr.steps) {
      const auto arg = [&](int k) { return step.args[k] < 0 ? 0 : values[static_cast<std::size_t>(step.args[k])]; };
      if (step.op == ScalarOp::constant) values.push_back(step.real);
      else if (step.op == ScalarOp::index) values.push_back(static_cast<double>(at[static_cast<std::size_t>(step.which)]));
      else if (step.op == ScalarOp::input) values.push_back(combined && step.which == 0 ? *combined : element(nest_.inputs[static_cast<std::size_t>(step.which)], at));
      else values.push_back(test::apply_exactly(step.op, arg(0), arg(1), arg(2)));
    }
    return values.back();
  }

  /// f(at) for all indices of the axes that are reduced, or of those that are not.
  template <class F>
  void each(bool reduced, std::vector<std::int64_t>& at, std::size_t axis, const F& f) const {
    if (axis == nest_.axes.size()) return f();
    if (nest_.axes[axis].reduced != reduced) return each(reduced, at, axis + 1, f);
    for (at[axis] = 0; at[axis] < nest_.axes[axis].size; ++at[axis]) each(reduced, at, axis + 1, f);
    at[axis] = 0;
  }

  void check_points() const {
    std::vector<std::int64_t> at(nest_.axes.size(), 0);
    int seen = 0;
    each(false, at, 0, [&] {
      if (testing::Test::HasFatalFailure() || (nest_.combine && seen++ % 3 != 0)) return;
      double all = nest_.combine == Combine::max ? -INFINITY : nest_.combine == Combine::min ? INFINITY : 0, sizes = 0;
      const auto take = [&] {
        const double value = evaluate(nest_.body, at, nullptr);
        sizes += std::abs(value);
        all = nest_.combine == Combine::max ? std::max(all, value) : nest_.combine == Combine::min ? std::min(all, value) : all + value;
      };
      nest_.combine ? each(true, at, 0, take) : take();
      const double want = nest_.epilogue.steps.empty() ? all : evaluate(nest_.epilogue, at, &all), got = element(nest_.output, at);
      const double tolerance = (nest_.output.dtype == DType::bf16 ? 0.01 : 1e-5) * std::max(1.0, nest_.combine == Combine::sum ? sizes : std::abs(want));
      ASSERT_NEAR(got, want, tolerance) << to_string(nest_);
    });
  }

  std::mt19937& random_;
  LoopNest nest_;
  std::vector<std::vector<std::byte>> memory_;
};

TEST(Rows, RandomNests) {
  SKIP_WITHOUT_ROW_CODE;
  constexpr unsigned seed = 20261121;
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  int rows = 0, columns = 0, windows = 0, long_rows = 0;
  const int threads = num_threads();
  for (int i = 0; i < 1000 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    RandomNest nest(random, i % 20 == 0);
    const auto try_one = [&](std::unique_ptr<Kernel> (*make)(const LoopNest&), int& count) {
      const auto kernel = make(nest.nest());
      if (!kernel) return;
      ++count;
      nest.check(*kernel);
    };
    try_one(make_rows_kernel, rows);
    try_one(make_columns_kernel, columns);
    try_one(make_window_kernel, windows);
    try_one(make_long_rows_kernel, long_rows);
  }
  set_num_threads(threads);
  std::cout << rows << " nests over rows, " << columns << " down columns, " << windows << " windows, " << long_rows << " long rows\n";
  EXPECT_GT(rows, 100);
  EXPECT_GT(columns, 50);
  EXPECT_GT(windows, 15);
  EXPECT_GT(long_rows, 20);
}

}  // namespace
}  // namespace ein::host
