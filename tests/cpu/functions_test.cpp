// Functions of an element in every engine of the CPU, against long double: values at the ends,
// bounds, rises and falls, and the largest error in units in the last place. `make function-errors`
// measures all numbers by the same means.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include <ein/compile.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include "support/function_errors.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::calls_library, test::Engine, test::engines, test::Function, test::functions;

TEST(Functions, ValuesAtTheEnds) {
  const auto check = [&]<class C>(C) {
    for (const Function& f : functions()) {
      std::vector<Function::At> values = f.values;
      values.push_back(
          {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()});
      std::vector<Engine<C>> all = engines<C>(f.op);
      if constexpr (std::is_same_v<C, double>)
        all.push_back({"interpreter", test::interpreter(f.op)});
      for (const Engine<C>& engine : all) {
        for (const auto& [x, y] : values) {
          // In vectors, and in what is left over of them.
          for (std::size_t n : {std::size_t{1}, std::size_t{21}}) {
            const std::vector<C> in(n, static_cast<C>(x));
            std::vector<C> out(n);
            engine.run(in.data(), out.data(), n);
            for (C got : out) {
              const C want = static_cast<C>(y);
              ASSERT_TRUE(std::isnan(want) ? std::isnan(got)
                                           : got == want && std::signbit(got) == std::signbit(want))
                  << info(f.op).name << "(" << x << ") is " << got << " and not " << want << ", "
                  << engine.name << " of f" << 8 * sizeof(C);
            }
          }
        }
      }
    }
  };
  check(1.F);
  check(1.0);
}

template <class C>
void expect_near_bounded_and_ordered(const std::vector<test::Result<C>>& results) {
  ASSERT_FALSE(results.empty());
  for (const auto& [f, engine, found] : results) {
    const std::string what =
        std::string(info(f->op).name) + " of f" + std::to_string(8 * sizeof(C)) + ", " + engine;
    EXPECT_LE(found.worst, f->template most_units<C>()) << what << ", at " << found.at;
    EXPECT_EQ(found.turns, 0) << what << ", at " << found.turned_at;
    EXPECT_EQ(found.outside, 0) << what << ", at " << found.outside_at;
  }
}

TEST(Functions, FloatsAreNearBoundedAndOrdered) {
  constexpr std::uint64_t seed = 20261122;
  std::cout << "seed " << seed << '\n';
  expect_near_bounded_and_ordered(
      test::measure<float>(test::subjects_of<float>(), 10, [](std::int64_t part) {
        return test::some_points<float>(seed + static_cast<std::uint64_t>(part), 100'000);
      }));
}
TEST(Functions, DoublesAreNearBoundedAndOrdered) {
  constexpr std::uint64_t seed = 20261123;
  std::cout << "seed " << seed << '\n';
  std::vector<test::Subject<double>> subjects = test::subjects_of<double>();
  for (test::Subject<double>& subject : subjects)
    subject.engines.push_back({"interpreter", test::interpreter(subject.function->op)});
  expect_near_bounded_and_ordered(test::measure<double>(subjects, 10, [](std::int64_t part) {
    return test::some_points<double>(seed + static_cast<std::uint64_t>(part), 30'000);
  }));
}

TEST(Functions, NumbersOf16BitsAreNearBoundedAndOrdered) {
  // A bf16 or f16 that is rounded from the exact value is off by half a unit; functions that have a
  // shorter form for these add up to an eighth in f16 and a fiftieth in bf16.
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const double most = dtype == DType::bf16 ? 0.52 : 0.64;
    for (const auto& [f, engine, found] :
         test::measure_16_bits(test::subjects_of_16_bits(dtype), dtype)) {
      const std::string what =
          std::string(info(f->op).name) + " of " + std::string(name(dtype)) + ", " + engine;
      EXPECT_LE(found.worst, most) << what << ", at " << found.at;
      EXPECT_EQ(found.turns, 0) << what << ", at " << found.turned_at;
      EXPECT_EQ(found.outside, 0) << what << ", at " << found.outside_at;
    }
  }
}

/// As is assumed where the C library's are measured once.
template <class C>
void expect_same_on_all_instruction_sets() {
  const std::vector<C> x = test::some_points<C>(20261125, 20'000);
  for (const Function& f : functions()) {
    if (!calls_library<C>(f.op)) continue;
    std::vector<C> first(x.size()), other(x.size());
    const std::vector<Engine<C>> all = engines<C>(f.op);
    all[0].run(x.data(), first.data(), x.size());
    for (const Engine<C>& engine : all) {
      engine.run(x.data(), other.data(), x.size());
      EXPECT_EQ(std::memcmp(first.data(), other.data(), x.size() * sizeof(C)), 0)
          << info(f.op).name << " of f" << 8 * sizeof(C) << ", " << engine.name;
    }
  }
}
TEST(Functions, OfTheCLibraryAreTheSameOnAllInstructionSets) {
  expect_same_on_all_instruction_sets<float>();
  expect_same_on_all_instruction_sets<double>();
}

/// Whether to take all floats and 10^8 doubles, which takes long, and not a part of them.
bool takes_all() { return std::getenv("EIN_EVERY_NUMBER") != nullptr; }

TEST(Functions, SlowEveryFloat) {
  expect_near_bounded_and_ordered(
      test::measure_floats(test::subjects_of<float>(), takes_all() ? 1 : 251));
}
TEST(Functions, SlowManyDoubles) {
  expect_near_bounded_and_ordered(
      test::measure_doubles(test::subjects_of<double>(), takes_all() ? 100'000'000 : 1'000'000));
}

/// The public functions where they once had garbage: short and long tensors take different engines.
TEST(Functions, TailsOfGates) {
  const std::vector<double> far{
      -5.652190, -6,    -8,    -10,   -104,
      -1e4,      -1e10, -1e30, -3e38, -std::numeric_limits<double>::infinity()};
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (std::int64_t repeats : {1, 400}) {
      const Tensor x = (zeros({repeats, 1}, DType::f64) + from_vector(far))
                           .view({repeats * std::ssize(far)})
                           .to(dtype);
      const std::vector<double> points = test::get_values(x);
      for (const bool is_compiled : {false, true}) {
        const auto values = [&](Tensor (*f)(const Tensor&)) {
          return test::get_values(is_compiled ? compile([f](const Tensor& t) { return f(t); })(x)
                                              : f(x));
        };
        const std::vector<double> g = values(gelu), s = values(silu), e = values(erf);
        for (std::size_t i = 0; i < points.size(); ++i) {
          const double tolerance = dtype == DType::bf16 ? 0.01 : 1e-6,
                       subnormal = dtype == DType::bf16 ? 1e-40 : 2e-45;
          const double of_gelu = test::times_gate(points[i], test::normal(points[i])),
                       of_silu = test::times_gate(points[i], test::logistic(points[i]));
          EXPECT_NEAR(g[i], of_gelu, std::max(std::abs(of_gelu) * tolerance, subnormal))
              << points[i];
          EXPECT_NEAR(s[i], of_silu, std::max(std::abs(of_silu) * tolerance, subnormal))
              << points[i];
          EXPECT_TRUE(std::signbit(g[i]) && std::signbit(s[i])) << points[i];
          EXPECT_EQ(e[i], dtype == DType::f64 ? std::erf(points[i]) : -1) << points[i];
        }
      }
    }
  }
}

}  // namespace
}  // namespace ein
