// Sums of axes: pieces side by side in a dimension, joined, split and multiplied by parts.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/random_sums.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace literals;

using test::expect_error;
using test::get_values;
using test::make_tensor;
using test::RandomSums;
using test::SumCase;
using test::SumElement;
using Values = std::vector<double>;

struct Sample {
  SumCase sums;
  std::string text;
  std::vector<Values> inputs;
  std::vector<Values> seeds;  // the cotangents

  Sample(SumCase made, std::mt19937& random) : sums(std::move(made)), text(sums.text()) {
    const auto numbers = [&](std::int64_t count) {
      Values values;
      for (std::int64_t i = 0; i < count; ++i)
        values.push_back(static_cast<double>(static_cast<int>(random() % 7) - 3));
      return values;
    };
    for (const auto& side : sums.inputs) inputs.push_back(numbers(side.elements()));
    for (const auto& side : sums.outputs) seeds.push_back(numbers(side.elements()));
  }
  std::vector<AxisSize> sizes() const {
    std::vector<AxisSize> sizes;
    for (const auto& [name, size] : sums.given) sizes.push_back({name, size});
    return sizes;
  }
  std::vector<Tensor> tensors(DType dtype = DType::f64) const {
    std::vector<Tensor> made;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      made.push_back(make_tensor(inputs[k], sums.inputs[k].shape(), dtype));
    return made;
  }
  std::vector<Tensor> call(Operation op, const std::vector<Tensor>& operands,
                           Reduction reduction = Reduction::sum) const {
    std::vector<const Tensor*> all;
    for (const Tensor& operand : operands) all.push_back(&operand);
    const std::vector<AxisSize> given = sizes();
    return detail::run_all({op,
                            detail::PatternArgument(text),
                            all,
                            given,
                            reduction,
                            {},
                            false,
                            {},
                            {},
                            grammar::Results::many});
  }
  /// Each result times its seeds, summed.
  Tensor loss(const std::vector<Tensor>& results) const {
    Tensor loss = zeros({}, DType::f64);
    for (std::size_t o = 0; o < results.size(); ++o) {
      const Tensor weights = make_tensor(seeds[o], sums.outputs[o].shape(), DType::f64);
      loss = loss + reduce(results[o] * weights, "... ->", "sum");
    }
    return loss;
  }
  std::string shown() const {
    std::string shown = text;
    for (const auto& [name, size] : sums.given) shown += ", " + name + " = " + std::to_string(size);
    return shown;
  }

  /// Calls f(numbers of the operands' elements, number of the result's) for each product.
  template <class F>
  void for_each_product(F&& f) const {
    std::vector<std::vector<SumElement>> elements;
    for (const auto& side : sums.inputs) {
      elements.emplace_back();
      for (std::int64_t e = 0; e < side.elements(); ++e)
        elements.back().push_back(side.element(e, sums.axes));
    }
    for (std::int64_t to = 0; to < sums.outputs[0].elements(); ++to) {
      std::vector<SumElement> met{sums.outputs[0].element(to, sums.axes)};
      std::vector<std::size_t> from;
      multiply(elements, met, from, [&] { f(from, static_cast<std::size_t>(to)); });
    }
  }

 private:
  template <class F>
  void multiply(const std::vector<std::vector<SumElement>>& elements, std::vector<SumElement>& met,
                std::vector<std::size_t>& from, F&& f) const {
    if (from.size() == elements.size()) {
      // An axis of the result is one of an operand's.
      for (std::size_t x = 0; x < sums.axes; ++x) {
        bool is_there = met[0].index[x] < 0 || sums.is_number[x];
        for (std::size_t k = 1; k < met.size(); ++k) is_there |= met[k].index[x] >= 0;
        if (!is_there) return;
      }
      return f();
    }
    const auto& mine = elements[from.size()];
    for (std::size_t e = 0; e < mine.size(); ++e) {
      bool fits = true;
      for (const SumElement& other : met) fits &= agree(mine[e], other);
      if (!fits) continue;
      met.push_back(mine[e]);
      from.push_back(e);
      multiply(elements, met, from, f);
      met.pop_back();
      from.pop_back();
    }
  }
};

template <class F>
void for_each_moved(unsigned count, F&& f) {
  test::for_seeds(count, [&](unsigned seed) {
    std::mt19937 random(seed);
    const Sample sample(RandomSums(random).moved(), random);
    SCOPED_TRACE(sample.shown());
    f(sample, random);
  });
}
template <class F>
void for_each_multiplied(unsigned count, std::size_t most_operands, F&& f) {
  test::for_seeds(count, [&](unsigned seed) {
    std::mt19937 random(seed);
    const Sample sample(RandomSums(random).multiplied(1 + seed % most_operands), random);
    SCOPED_TRACE(sample.shown());
    f(sample, random);
  });
}

Tensor counted(std::int64_t n) { return arange(n).to(DType::f32); }

TEST(SumsOfAxes, Join) {
  const Tensor a = counted(2), b = counted(3), ten = full({}, 10.0F);
  EXPECT_EQ(get_values(rearrange(a, b, "a, b -> (a + b)")), (Values{0, 1, 0, 1, 2}));
  EXPECT_EQ(get_values(rearrange(a, b, "a, b -> (b + a)")), (Values{0, 1, 2, 0, 1}));
  EXPECT_EQ(get_values(rearrange(ten, b, ", b -> (1 + b)")), (Values{10, 0, 1, 2}));
  EXPECT_EQ(get_values(rearrange(b, ten, "b, -> (b + 2)")), (Values{0, 1, 2, 10, 10}));
  EXPECT_EQ(get_values(rearrange(b, a, "c, a -> (1 + a) c"_p)),
            (Values{0, 1, 2, 0, 0, 0, 1, 1, 1}));
  const std::vector<Tensor> list{a, b, a + 5};
  EXPECT_EQ(get_values(rearrange(list, "a, b, c -> (c + a + b)")), (Values{5, 6, 0, 1, 0, 1, 2}));
  EXPECT_EQ(rearrange(std::vector{a, a}, "n a -> a n").shape(), (Shape{2, 2})) << "stacks";
}

TEST(SumsOfAxes, Split) {
  const Tensor x = rearrange(counted(10), "(b n) -> b n", "b"_a = 2);
  const auto [q, k, v] = rearrange(x, "b (q + k + v) -> b q, b k, v b"_p, "q"_a = 2, "k"_a = 1);
  static_assert(std::is_same_v<std::remove_const_t<decltype(q)>, Tensor>);
  EXPECT_EQ(get_values(q), (Values{0, 1, 5, 6}));
  EXPECT_EQ(get_values(k), (Values{2, 7}));
  EXPECT_EQ(get_values(v), (Values{3, 8, 4, 9}));
  EXPECT_EQ(q.raw_data(), x.raw_data()) << "a view";
}

TEST(SumsOfAxes, SplitByATextOfTheRunTime) {
  const Tensor x = rearrange(counted(10), "(b n) -> b n", "b"_a = 2);
  const std::vector<Tensor> all = rearrange_all(x, runtime("b (q + k) -> k b, b q"), "q"_a = 1);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(get_values(all[0]), (Values{1, 6, 2, 7, 3, 8, 4, 9}));
  EXPECT_EQ(get_values(all[1]), (Values{0, 5}));
  const std::vector<Tensor> joined = rearrange_all(all, runtime("k b, b q -> b (q + k), k b"));
  EXPECT_EQ(get_values(joined[0]), get_values(x));
  EXPECT_EQ(get_values(joined[1]), get_values(all[0]));
}

TEST(SumsOfAxes, AreMovedAsPlainLoopsMoveThem) {
  for_each_moved(600, [](const Sample& sample, std::mt19937&) {
    const std::vector<Tensor> made = sample.call(Operation::rearrange, sample.tensors());
    ASSERT_EQ(made.size(), sample.sums.outputs.size());
    std::vector<Values> found;
    for (const Tensor& result : made) found.push_back(get_values(result));
    sample.sums.for_each_move(
        [&](std::size_t k, std::int64_t from, std::size_t o, std::int64_t to) {
          ASSERT_GE(from, 0);
          EXPECT_EQ(found[o][static_cast<std::size_t>(to)],
                    sample.inputs[k][static_cast<std::size_t>(from)])
              << "output " << o + 1 << " at " << to;
        });
  });
}

TEST(SumsOfAxes, GradientsOfMovesGoBack) {
  for_each_moved(300, [](const Sample& sample, std::mt19937&) {
    std::vector<Tensor> operands = sample.tensors();
    for (Tensor& operand : operands) operand.requires_grad(true);
    const Tensor loss = sample.loss(sample.call(Operation::rearrange, operands));
    const std::vector<Tensor> made = gradients(loss, operands);
    std::vector<Values> wanted;
    for (const Values& input : sample.inputs) wanted.emplace_back(input.size(), 0.0);
    sample.sums.for_each_move([&](std::size_t k, std::int64_t from, std::size_t o,
                                  std::int64_t to) {
      wanted[k][static_cast<std::size_t>(from)] += sample.seeds[o][static_cast<std::size_t>(to)];
    });
    for (std::size_t k = 0; k < operands.size(); ++k)
      EXPECT_EQ(get_values(made[k]), wanted[k]) << "of operand " << k + 1;
  });
}

TEST(SumsOfAxes, AreMultipliedAsPlainLoopsMultiplyThem) {
  for_each_multiplied(400, 3, [](const Sample& sample, std::mt19937& random) {
    Values wanted(sample.seeds[0].size(), 0.0);
    sample.for_each_product([&](const std::vector<std::size_t>& from, std::size_t to) {
      double product = 1;
      for (std::size_t k = 0; k < from.size(); ++k) product *= sample.inputs[k][from[k]];
      wanted[to] += product;
    });
    constexpr DType dtypes[] = {DType::f64, DType::f64, DType::f32, DType::i32, DType::bf16};
    const DType dtype = dtypes[random() % std::size(dtypes)];
    const Values made = get_values(sample.call(Operation::einsum, sample.tensors(dtype))[0]);
    for (std::size_t e = 0; e < wanted.size(); ++e) {
      if (dtype == DType::bf16 && std::abs(wanted[e]) > 256) continue;
      EXPECT_EQ(made[e], wanted[e]) << name(dtype) << " at " << e;
    }
  });
}

TEST(SumsOfAxes, GradientsOfProductsEqualPlainLoops) {
  for_each_multiplied(200, 3, [](const Sample& sample, std::mt19937&) {
    std::vector<Tensor> operands = sample.tensors();
    for (Tensor& operand : operands) operand.requires_grad(true);
    const Tensor loss = sample.loss(sample.call(Operation::einsum, operands));
    const std::vector<Tensor> made = gradients(loss, operands);
    std::vector<Values> wanted;
    for (const Values& input : sample.inputs) wanted.emplace_back(input.size(), 0.0);
    sample.for_each_product([&](const std::vector<std::size_t>& from, std::size_t to) {
      for (std::size_t of = 0; of < from.size(); ++of) {
        double product = sample.seeds[0][to];
        for (std::size_t k = 0; k < from.size(); ++k)
          product *= k == of ? 1.0 : sample.inputs[k][from[k]];
        wanted[of][from[of]] += product;
      }
    });
    for (std::size_t k = 0; k < operands.size(); ++k)
      EXPECT_EQ(get_values(made[k]), wanted[k]) << "of operand " << k + 1;
  });
}

TEST(SumsOfAxes, AreReducedAsPlainLoopsReduceThem) {
  for_each_multiplied(300, 1, [](const Sample& sample, std::mt19937& random) {
    constexpr Reduction reductions[] = {Reduction::sum, Reduction::max, Reduction::mean,
                                        Reduction::prod};
    const Reduction reduction = reductions[random() % std::size(reductions)];
    std::vector<Values> taken(sample.seeds[0].size());
    sample.for_each_product([&](const std::vector<std::size_t>& from, std::size_t to) {
      taken[to].push_back(sample.inputs[0][from[0]]);
    });
    for (const Values& values : taken) {
      if (values.empty()) return;
    }
    const Values made = get_values(sample.call(Operation::reduce, sample.tensors(), reduction)[0]);
    for (std::size_t e = 0; e < taken.size(); ++e) {
      double want = reduction == Reduction::prod ? 1 : 0;
      for (const double v : taken[e]) {
        if (reduction == Reduction::prod)
          want *= v;
        else
          want += v;
      }
      if (reduction == Reduction::mean) want /= static_cast<double>(taken[e].size());
      if (reduction == Reduction::max) want = *std::max_element(taken[e].begin(), taken[e].end());
      EXPECT_NEAR(made[e], want, 1e-12 * std::abs(want)) << name(reduction) << " at " << e;
    }
  });
}

TEST(SumsOfAxes, Compile) {
  for_each_moved(60, [](const Sample& sample, std::mt19937&) {
    const std::vector<Tensor> operands = sample.tensors();
    if (operands.size() > 2) return;
    auto f = compile([&](const Tensor& x, const Tensor& y) {
      std::vector<Tensor> doubled;
      const auto given = operands.size() == 1 ? std::vector{x} : std::vector{x, y};
      for (const Tensor& z : sample.call(Operation::rearrange, given)) doubled.push_back(z * 2);
      return doubled;
    });
    const std::vector<Tensor> wanted = sample.call(Operation::rearrange, operands);
    const std::vector<Tensor> made = f(operands.front(), operands.back());
    for (std::size_t o = 0; o < wanted.size(); ++o)
      EXPECT_EQ(get_values(made[o]), get_values(wanted[o] * 2)) << "output " << o + 1;
  });
}

/// One trace for all lengths: what is joined to a sequence, and split off again.
TEST(SumsOfAxes, OfAnyLength) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& cls, const Tensor& x) {
        ++traces;
        const Tensor joined = rearrange(cls, x, "c, s c -> (1 + s) c");
        const auto [first, rest] = rearrange(joined * 2, "(1 + s) c -> c, s c"_p);
        return rearrange(rest, first, "s c, c -> (s + 1) c");
      },
      {"c=3", "s c=3"});
  for (const std::int64_t s : {5, 1, 17, 2}) {
    const Tensor x = rearrange(counted(3 * s), "(s c) -> s c", "c"_a = 3), cls = full({3}, 7.0F);
    Values wanted;
    for (std::int64_t i = 0; i < 3 * s; ++i) wanted.push_back(2.0 * static_cast<double>(i));
    wanted.insert(wanted.end(), 3, 14.0);
    EXPECT_EQ(get_values(f(cls, x)), wanted) << s;
  }
  EXPECT_EQ(traces, 1);
}

TEST(SumsOfAxes, HaveTypes) {
  const Typed<float, "b n d"> x(ones({2, 7, 3}));
  const auto [q, k, v] =
      rearrange(x, "b (q + k + v) d -> b q d, b k d, b d v"_p, "q"_a = 4, "k"_a = 2);
  static_assert(std::is_same_v<std::remove_const_t<decltype(q)>, Typed<float, "b q d">>);
  static_assert(std::is_same_v<std::remove_const_t<decltype(v)>, Typed<float, "b d v">>);
  EXPECT_EQ(v.shape(), (Shape{2, 3, 1}));

  const Typed<float, "b d"> cls(ones({2, 3}));
  const Typed<float, "b s d"> tokens(ones({2, 4, 3}));
  const auto joined = rearrange(cls, tokens, "b d, b s d -> b (1 + s) d"_p);
  static_assert(std::is_same_v<std::remove_const_t<decltype(joined)>, Typed<float, "b s+1 d">>);
  const auto [head, tail] = rearrange(joined, "b (1 + s) d -> b d, b s d"_p);
  static_assert(std::is_same_v<std::remove_const_t<decltype(tail)>, Typed<float, "b s d">>);
  const Typed<float, "b n=9 d"> known(ones({2, 9, 3}));
  const auto [few, many] = rearrange(known, "b (f + m) d -> b f d, b m d"_p, "f"_a = size_c<2>);
  static_assert(std::is_same_v<std::remove_const_t<decltype(many)>, Typed<float, "b m=7 d">>);
  const auto turned = einsum(known, known, "b (f + m) d, b (f + m) e -> d (f + m) e"_p);
  static_assert(std::is_same_v<std::remove_const_t<decltype(turned)>, Typed<float, "d n=9 d">>);
}

TEST(SumsOfAxes, SizesThatDoNotFit) {
  const Tensor x = counted(6), y = counted(2);
  expect_error([&] { rearrange(x, "(a + b) -> (b + a)", "a"_a = 7); }, ErrorKind::size,
               {"'(a + b)' is at least 7 by its pieces (a = 7 in the call), 6 in operand 1"});
  expect_error([&] { rearrange(x, "(a + b) -> (b + a)", "a"_a = 2, "b"_a = 5); }, ErrorKind::size,
               {"'(a + b)' is 7 by its pieces (a = 2 in the call, b = 5 in the call), 6 in"});
  expect_error([&] { rearrange(x, "(a + (b c)) -> (a + (c b))", "a"_a = 1, "c"_a = 2); },
               ErrorKind::divisibility, {"'(b c)'", "cannot be split"});
  expect_error([&] { einsum(x, y, "(a + b), (a + b) ->"); }, ErrorKind::size,
               {"axis '(a + b)' has two sizes: 6 in operand 1, 2 in operand 2"});
  expect_error([&] { rearrange(x, runtime("(a + b) -> a, b"), "a"_a = 2); }, ErrorKind::pattern,
               {"several outputs"});
  expect_error([&] { (void)rearrange_all(x, runtime("(a + b) -> a"), "a"_a = 2); },
               ErrorKind::pattern, {"axis 'b' is lost"});
}

}  // namespace
}  // namespace ein
