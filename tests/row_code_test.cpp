// Row code against plain loops in double precision.
#include "cpu/row_code.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/exact_steps.hpp"
#include "support/row_code.hpp"
#include "support/tensor_values.hpp"
#include "tensor/convert.hpp"

namespace ein::host {
namespace {

using Place = RowProgram::Place;
using test::apply_exactly;

std::unique_ptr<const RowCode> compiled(const RowProgram& program) { return RowCode::compile(program); }

/// out[i] = op(in[i]) by compiled code.
std::vector<float> run_op(ScalarOp op, const std::vector<float>& in) {
  RowProgram program;
  program.places = {{DType::f32, 1, 0}, {DType::f32, 1, 0}};
  program.nests = {{.inputs = {0}, .output = 1, .body = Ex::apply(op, Ex::input(0))}};
  program.length = static_cast<std::int64_t>(in.size());
  std::vector<float> out(in.size());
  std::byte* places[] = {reinterpret_cast<std::byte*>(const_cast<float*>(in.data())), reinterpret_cast<std::byte*>(out.data())};
  (*compiled(program))({places, program.length, 1, nullptr});
  return out;
}

double units_in_last_place(float got, double want) {
  const auto rounded = static_cast<float>(want);
  if (std::isnan(want) || std::isinf(rounded) || want == 0) {
    return (std::isnan(want) && std::isnan(got)) || got == rounded ? 0 : std::numeric_limits<double>::infinity();
  }
  const double next = std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity());
  return std::abs(got - want) / std::max(next - std::abs(static_cast<double>(rounded)), static_cast<double>(std::numeric_limits<float>::denorm_min()));
}

TEST(RowCode, FunctionsOverTheirWholeRange) {
  SKIP_WITHOUT_ROW_CODE;
  struct Case {
    ScalarOp op;
    double units;  // the most that results may be off
  };
  std::vector<float> points;
  for (std::uint64_t bits = 0; bits < 0x100000000ULL; bits += 9973) points.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (float x = -20; x < 20; x += 0.0007F) points.push_back(x);
  for (float special : {0.F, -0.F, 1.F, -1.F, 4.F, -4.F, 0.625F, 88.7F, -103.9F, INFINITY, -INFINITY, NAN}) points.push_back(special);
  for (const Case& c : {Case{ScalarOp::exp, 1.5}, {ScalarOp::log, 1.5}, {ScalarOp::tanh, 2.5}, {ScalarOp::erf, 2.5}, {ScalarOp::sqrt, 0.5001}, {ScalarOp::rsqrt, 1.5}}) {
    const std::vector<float> got = run_op(c.op, points);
    double worst = 0;
    float where = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double off = units_in_last_place(got[i], apply_exactly(c.op, points[i], 0, 0));
      if (off > worst) worst = off, where = points[i];
    }
    EXPECT_LE(worst, c.units) << info(c.op).name << " of " << where;
    std::cout << info(c.op).name << ": " << worst << " units in the last place at " << where << '\n';
  }
}

/// Memory of a place for some rows.
struct Memory {
  std::vector<std::byte> bytes;
  std::vector<double> values;  // of each element
};

/// Random programs: maps, reductions and scalars over a few places, several of which one nest writes and others read.
class RandomProgram {
 public:
  explicit RandomProgram(std::mt19937& random) : random_(random) {
    rows_ = pick(1, 5);
    length_ = pick(0, 3) == 0 ? pick(1, 20) : pick(0, 3) == 0 ? pick(1900, 5000) : pick(17, 400);
    program_.length = length_;
    program_.row_axis = 0;
    program_.along_axis = 1;
    for (int i = pick(1, 4); i > 0; --i) {
      const DType dtype = any_dtype();
      const int step = pick(0, 4);
      add_place(dtype, step > 2 || !RowCode::can_step(dtype, step) ? 1 : step, pick(0, 3) == 0);
    }
    for (int i = pick(1, 5); i > 0; --i) add_nest();
  }

  void check() {
    const auto code = compiled(program_);
    ASSERT_NE(code, nullptr);
    std::vector<std::byte*> places;
    std::vector<Memory> memory = memory_;
    for (Memory& m : memory) places.push_back(m.bytes.data());
    const std::int64_t index[] = {3, 7};
    run_exactly(index);
    (*code)({places.data(), length_, rows_, index});
    for (const RowProgram::Nest& nest : program_.nests) {
      const Place& place = program_.places[nest.output];
      const Memory& got = memory[nest.output];
      for (std::size_t i = 0; i < memory_[nest.output].values.size(); ++i) {
        float value;
        load_as(got.bytes.data() + i * size_of(place.dtype), place.dtype, 1, &value, 1);
        const double want = memory_[nest.output].values[i];
        // bf16 has 8 bits, of which several nests may lose some.
        const double tolerance = has_halves_ ? 0.05 : 2e-5;
        ASSERT_TRUE(value == want || (std::isfinite(want) && std::abs(value - want) <= tolerance * std::max(1.0, std::abs(want))) || (std::isnan(want) && std::isnan(value)))
            << "element " << i << " is " << value << " and should be " << want << '\n' << text();
      }
    }
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  DType any_dtype() {
    constexpr DType dtypes[] = {DType::f32, DType::f32, DType::f32, DType::bf16, DType::f16, DType::i32, DType::u8, DType::boolean};
    return dtypes[pick(0, 7)];
  }
  std::size_t add_place(DType dtype, std::int64_t step, bool stands_still) {
    has_halves_ |= dtype == DType::bf16 || dtype == DType::f16;
    const std::int64_t row_step = stands_still ? 0 : step == 0 ? pick(1, 3) : length_ * step + pick(0, 5);
    program_.places.push_back({dtype, step, row_step});
    const std::int64_t elements = (rows_ - 1) * row_step + (length_ - 1) * step + 1;
    Memory m;
    m.bytes.resize(static_cast<std::size_t>(elements) * size_of(dtype));
    for (std::int64_t i = 0; i < elements; ++i) {
      const bool is_whole = dtype == DType::i32 || dtype == DType::u8 || dtype == DType::boolean;
      const double value = is_whole ? pick(0, dtype == DType::boolean ? 1 : 3) : std::uniform_real_distribution<double>(0.5, 1.5)(random_);
      const auto number = static_cast<float>(value);
      store_from(&number, 1, m.bytes.data() + static_cast<std::size_t>(i) * size_of(dtype), dtype, 1);
      float stored;
      load_as(m.bytes.data() + static_cast<std::size_t>(i) * size_of(dtype), dtype, 1, &stored, 1);
      m.values.push_back(stored);
    }
    memory_.push_back(std::move(m));
    return program_.places.size() - 1;
  }

  Ex any_value(int depth, std::size_t inputs, bool is_scalar) {
    if (depth == 0 || pick(0, 4) == 0) {
      if (!is_scalar && pick(0, 9) == 0) return Ex::index(pick(0, 1)) * 0.01;
      return pick(0, 4) == 0 ? Ex(0.25 * pick(1, 6)) : Ex::input(pick(0, static_cast<int>(inputs) - 1));
    }
    const Ex a = any_value(depth - 1, inputs, is_scalar), b = any_value(depth - 1, inputs, is_scalar);
    switch (pick(0, 13)) {
      case 0: return a + b;
      case 1: return a - b;
      case 2:
      case 3: return a * b;
      case 4: return a * b + any_value(depth - 1, inputs, is_scalar);
      case 5: return any_value(depth - 1, inputs, is_scalar) - a * b;
      case 6: return a / (b * b + 1.0);
      case 7: return Ex::apply(ScalarOp::max, a, b);
      case 8: return Ex::apply(ScalarOp::min, a, b);
      case 9: return Ex::apply(ScalarOp::tanh, a);
      case 10: {
        constexpr ScalarOp functions[] = {ScalarOp::erf, ScalarOp::sigmoid, ScalarOp::silu, ScalarOp::normal_cdf, ScalarOp::gelu};
        return Ex::apply(functions[pick(0, 4)], a * 0.5);
      }
      case 11: return Ex::apply(ScalarOp::exp, Ex::apply(ScalarOp::neg, Ex::apply(ScalarOp::abs, a)));
      case 12: return Ex::apply(ScalarOp::log, Ex::apply(ScalarOp::abs, a) + 1.0);
      // Not of numbers near each other, of which rounding decides.
      default: return Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::ge, Ex::index(1), Ex::index(0) + double(pick(0, 300))), a, b);
    }
  }

  void add_nest() {
    RowProgram::Nest nest;
    nest.is_scalar = pick(0, 4) == 0;
    const bool combines = !nest.is_scalar && pick(0, 2) == 0;
    for (int i = pick(1, 3); i > 0; --i) nest.inputs.push_back(static_cast<std::size_t>(pick(0, static_cast<int>(memory_.size()) - 1)));
    nest.body = any_value(pick(0, 3), nest.inputs.size(), nest.is_scalar);
    if (nest.is_scalar && std::any_of(nest.body.steps.begin(), nest.body.steps.end(), [](const ScalarStep& s) { return s.op == ScalarOp::index; }))
      nest.body = Ex::input(0) * 0.5;
    if (combines) {
      nest.combine = std::array{Combine::sum, Combine::sum, Combine::max, Combine::min}[static_cast<std::size_t>(pick(0, 3))];
      if (nest.combine == Combine::sum) nest.body = Ex::of(nest.body) * (1.0 / static_cast<double>(length_));
      if (pick(0, 1) == 0) nest.epilogue = Ex::input(0) * 0.5 + 1.0;
    }
    const DType dtype = pick(0, 4) == 0 ? (pick(0, 1) == 0 ? DType::bf16 : DType::f16) : DType::f32;
    nest.output = add_place(dtype, nest.is_scalar || combines ? 0 : 1, false);
    program_.nests.push_back(std::move(nest));
  }

  double& element(std::size_t place, std::int64_t row, std::int64_t i) {
    const Place& p = program_.places[place];
    return memory_[place].values[static_cast<std::size_t>(row * p.row_step + i * p.step)];
  }
  void write(std::size_t place, std::int64_t row, std::int64_t i, double value) {
    const auto number = static_cast<float>(value);
    const DType dtype = program_.places[place].dtype;
    std::byte bytes[8];
    store_from(&number, 1, bytes, dtype, 1);
    float stored = number;
    if (dtype != DType::f32) load_as(bytes, dtype, 1, &stored, 1);
    element(place, row, i) = dtype == DType::f32 ? value : stored;
  }

  double evaluate(const ScalarExpr& expr, const RowProgram::Nest& nest, std::int64_t row, std::int64_t i, const std::int64_t* index, const double* combined) {
    std::vector<double> values;
    for (const ScalarStep& step : expr.steps) {
      const auto arg = [&](int k) { return step.args[k] < 0 ? 0 : values[static_cast<std::size_t>(step.args[k])]; };
      if (step.op == ScalarOp::constant) values.push_back(step.real);
      else if (step.op == ScalarOp::index) values.push_back(static_cast<double>(index[step.which] + (step.which == 0 ? row : i)));
      else if (step.op == ScalarOp::input) values.push_back(combined && step.which == 0 ? *combined : element(nest.inputs[static_cast<std::size_t>(step.which)], row, nest.is_scalar ? 0 : i));
      else values.push_back(apply_exactly(step.op, arg(0), arg(1), arg(2)));
    }
    return values.back();
  }

  void run_exactly(const std::int64_t* index) {
    for (std::int64_t row = 0; row < rows_; ++row) {
      for (const RowProgram::Nest& nest : program_.nests) {
        if (!nest.combine) {
          for (std::int64_t i = 0; i < (nest.is_scalar ? 1 : length_); ++i) write(nest.output, row, i, evaluate(nest.body, nest, row, i, index, nullptr));
          continue;
        }
        double all = *nest.combine == Combine::sum ? 0 : *nest.combine == Combine::max ? -INFINITY : INFINITY;
        for (std::int64_t i = 0; i < length_; ++i) {
          const double value = evaluate(nest.body, nest, row, i, index, nullptr);
          all = *nest.combine == Combine::sum ? all + value : *nest.combine == Combine::max ? std::max(all, value) : std::min(all, value);
        }
        write(nest.output, row, 0, nest.epilogue.steps.empty() ? all : evaluate(nest.epilogue, nest, row, 0, index, &all));
      }
    }
  }

  std::string text() const {
    std::string result = std::to_string(rows_) + " rows of " + std::to_string(length_) + '\n';
    for (const RowProgram::Nest& nest : program_.nests) {
      result += "place " + std::to_string(nest.output) + " (" + std::string(name(program_.places[nest.output].dtype)) + ") =" + (nest.combine ? " combined " : " ") + to_string(nest.body) + " of";
      for (std::size_t p : nest.inputs) result += ' ' + std::to_string(p);
      result += '\n';
    }
    return result;
  }

  std::mt19937& random_;
  std::int64_t rows_, length_;
  RowProgram program_;
  std::vector<Memory> memory_;
  bool has_halves_ = false;
};

TEST(RowCode, RandomPrograms) {
  SKIP_WITHOUT_ROW_CODE;
  constexpr unsigned seed = 20261121;
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  for (int i = 0; i < 1000 && !testing::Test::HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    RandomProgram(random).check();
  }
}

TEST(RowCode, ExtremesKeepNaN) {
  SKIP_WITHOUT_ROW_CODE;
  for (Combine combine : {Combine::max, Combine::min, Combine::sum}) {
    for (std::size_t n : {1u, 15u, 70u, 300u}) {
      for (std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
        std::vector<float> in(n, 1.F);
        in[at] = NAN;
        float out = 0;
        RowProgram program;
        program.places = {{DType::f32, 1, 0}, {DType::f32, 0, 0}};
        program.nests = {{.inputs = {0}, .output = 1, .body = Ex::input(0), .combine = combine}};
        program.length = static_cast<std::int64_t>(n);
        std::byte* places[] = {reinterpret_cast<std::byte*>(in.data()), reinterpret_cast<std::byte*>(&out)};
        (*compiled(program))({places, program.length, 1, nullptr});
        EXPECT_TRUE(std::isnan(out)) << n << ' ' << at;
      }
    }
  }
}

TEST(RowCode, LongSumsLoseLittle) {
  SKIP_WITHOUT_ROW_CODE;
  std::vector<float> in(longest_combined_row);
  std::mt19937 random(1);
  double want = 0;
  for (float& x : in) want += x = std::uniform_real_distribution<float>(0, 1)(random);
  float out = 0;
  RowProgram program;
  program.places = {{DType::f32, 1, 0}, {DType::f32, 0, 0}};
  program.nests = {{.inputs = {0}, .output = 1, .body = Ex::input(0), .combine = Combine::sum}};
  program.length = longest_combined_row;
  std::byte* places[] = {reinterpret_cast<std::byte*>(in.data()), reinterpret_cast<std::byte*>(&out)};
  (*compiled(program))({places, program.length, 1, nullptr});
  EXPECT_NEAR(out, want, want * 3e-7);
}

TEST(RowCode, WhatItLacksIsNotCompiled) {
  RowProgram program;
  program.places = {{DType::f32, 1, 0}, {DType::f32, 1, 0}};
  program.nests = {{.inputs = {0}, .output = 1, .body = Ex::apply(ScalarOp::pow, Ex::input(0), Ex::input(0))}};
  program.length = 64;
  EXPECT_EQ(compiled(program), nullptr);
  program.nests[0].body = Ex::input(0);
  program.places[0].dtype = DType::f64;
  EXPECT_EQ(compiled(program), nullptr);
  for (const RowProgram::Place& place : {RowProgram::Place{DType::f32, 3, 0}, {DType::bf16, 2, 0}}) {
    program.places[0] = place;
    EXPECT_EQ(compiled(program), nullptr);
  }
  program.places = {{DType::f32, 1, 0}, {DType::f32, 2, 0}};  // written
  EXPECT_EQ(compiled(program), nullptr);
}

void expect_near(const Tensor& got, const Tensor& want) {
  const std::vector<double> a = test::get_values(got), b = test::get_values(want);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5 * std::max(1.0, std::abs(b[i]))) << i;
}

/// Chains whose nests share rows, compiled, against the same calls in double precision one by one.
TEST(RowCode, CompiledChains) {
  manual_seed(5);
  for (const auto& [rows, columns] : {std::pair{300, 333}, {64, 1024}, {2048, 65}, {7, 5000}, {4096, 16}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const Tensor x = randn({rows, columns}), y = randn({rows, columns}), w = randn({columns}), b = randn({columns});
    const auto wide = [](const Tensor& t) { return t.to(DType::f64); };
    const auto chain = [](const Tensor& x, const Tensor& y, const Tensor& w, const Tensor& b) {
      const Tensor h = layer_norm(x + y, w, b, "r [c]");
      return softmax(gelu(h) * 2.0 + x, "r [c]");
    };
    expect_near(compile(chain)(x, y, w, b), chain(wide(x), wide(y), wide(w), wide(b)));
    const auto gradient = [&](const Tensor& x, const Tensor& y, const Tensor& w, const Tensor& b) {
      const Tensor from = x.detach().requires_grad(true);
      std::vector<Tensor> inputs{from};
      return gradients(chain(from, y, w, b), y, inputs)[0];
    };
    expect_near(compile(gradient)(x, y, w, b), gradient(wide(x), wide(y), wide(w), wide(b)));
  }
}

/// Results too large for the caches, which are written past them, while the next nests read them too.
TEST(RowCode, LargeResults) {
  manual_seed(6);
  const Tensor x = randn({4096, 768}), y = randn({4096, 768}), w = randn({768}), b = randn({768});
  const auto both = [](const Tensor& x, const Tensor& y, const Tensor& w, const Tensor& b) {
    const Tensor h = x + y;
    return std::vector<Tensor>{h, layer_norm(h, w, b, "r [c]"), rearrange(h, "r c -> r c")};
  };
  auto compiled = compile(both);
  const std::vector<Tensor> want = both(x.to(DType::f64), y.to(DType::f64), w.to(DType::f64), b.to(DType::f64));
  for (int run = 0; run < 2; ++run) {
    const std::vector<Tensor> got = compiled(x, y, w, b);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) expect_near(got[i], want[i]);
  }
}

}  // namespace
}  // namespace ein::host
