// Writes of a compiled function to parts and other views of tensors from outside.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::get_values;

/// A function of an argument that may write to `state`.
using Function = std::function<Tensor(const Tensor& state, const Tensor& x)>;

/// Calls f three times as it is and three times compiled; results and state are the same each time.
std::string expect_like_eager(const Function& f, const Tensor& first, const Tensor& x) {
  const Tensor eager = first.clone(), compiled = first.clone();
  auto g = compile([&](const Tensor& a) { return f(compiled, a); });
  for (int call = 0; call < 3; ++call) {
    const Tensor argument = x + static_cast<double>(call);
    const std::vector<double> want = get_values(f(eager, argument)), got = get_values(g(argument));
    EXPECT_EQ(got, want) << "result of call " << call << "\n" << g.print();
    EXPECT_EQ(get_values(compiled), get_values(eager)) << "call " << call << "\n" << g.print();
  }
  return g.print();
}

TEST(PartialWrites, AreLikeEagerOnes) {
  const Tensor s = arange(24).to(DType::f32).view({4, 6}), x = ones({2, 6});
  const auto is_same = [&](const Function& f) { return expect_like_eager(f, s, x); };
  is_same([](const Tensor& t, const Tensor& a) {
    t.at({slice(1, 3)}).copy_from(a);
    return t * 2.0;
  });
  is_same([](const Tensor& t, const Tensor& a) {
    const Tensor before = t * 3.0;
    t.at({all, slice(0, 6, 5)}).copy_from(t.at({all, slice(2, 4)}));
    return before + t + a.at({0});
  });
  is_same([](const Tensor& t, const Tensor& a) {  // one after the other, which overlap
    t.at({slice(0, 2)}).copy_from(a);
    t.at({slice(1, 3)}).copy_from(a * 10.0);
    t.at({3}).fill(7);
    return exp(t * 0.01);
  });
  is_same([](const Tensor& t, const Tensor& a) {  // a part of a part, transposed
    t.at({slice(1, 3)}).transpose().at({slice(2, 4)}).copy_from(a.at({all, slice(0, 2)}));
    return t.transpose() * 1.0;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // a view that was made before
    const Tensor row = t.at({1});
    row.copy_from(a.at({0}));
    const Tensor once = row * 2.0;
    row.copy_from(once + t.at({0}));
    return row + once;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // what is read later was read before
    const Tensor old = t.clone();
    t.at({slice(2, 4)}).copy_from(a);
    return old - t;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // the whole of it through a view
    t.view({24}).copy_from(a.at({0, 0}) + arange(24).to(DType::f32));
    return t * 1.0;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // after the whole was assigned
    t.copy_from(t + 1.0);
    t.at({0}).copy_from(a.at({1}));
    return t.clone();
  });
  is_same([](const Tensor& t, const Tensor& a) {  // nothing
    t.at({slice(2, 2)}).copy_from(a.at({slice(0, 0)}));
    return t + a.at({0});
  });
}

TEST(PartialWrites, CostThePartAlone) {
  const Tensor cache = zeros({64, 1000});
  auto f = compile([&](const Tensor& row) { cache.at({5}).copy_from(row); });
  f(ones({1000}));
  EXPECT_EQ(f.cost().bytes_read, Count(4000)) << f.print();
  EXPECT_EQ(f.cost().bytes_written, Count(4000)) << f.print();
  EXPECT_EQ(f.memory().arena, 0u) << f.print();
  // Two of them, and what reads the whole after both.
  auto g = compile([&](const Tensor& row) {
    cache.at({5}).copy_from(row);
    cache.at({6}).copy_from(row);
    return reduce(cache, "a b -> b", Reduction::sum);
  });
  EXPECT_EQ(get_values(g(full({1000}, 3.0)))[0], 6.0);
  EXPECT_EQ(g.cost().bytes_written, Count(3 * 4000)) << g.print();
  EXPECT_EQ(g.cost().bytes_read, Count(2 * 4000 + 64 * 4000)) << g.print();
}

TEST(PartialWrites, Refusals) {
  const Tensor s = zeros({4, 4}), x = ones({4});
  const auto refuse = [&](auto f, std::vector<std::string> words) {
    test::expect_error([&] { compile([&](const Tensor& a) { f(a); })(x); }, ErrorKind::value,
                       words);
  };
  refuse([&](const Tensor& a) { a.at({slice(1, 3)}).fill(1); },
         {"fill: a value of shape (2,)", "only tensors from outside can"});
  refuse([&](const Tensor&) { repeat(s.at({0}), "a -> 2 a").fill(1); }, {"fill", "share memory"});
  refuse(
      [&](const Tensor& a) {
        const Tensor w = a.detach();
        s.at({0}).copy_from(Tensor(w).requires_grad(true));
      },
      {"gradients flow"});
}

/// Random writes to views of a matrix between reads of it.
TEST(PartialWrites, RandomOnesAreLikeEagerOnes) {
  test::for_seeds(2000, [](unsigned seed) {
    const auto f = [seed](const Tensor& t, const Tensor& a) {
      std::mt19937 random(seed);
      const auto below = [&](std::int64_t n) {
        return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
      };
      std::vector<Tensor> reads{a * 1.0};
      std::vector<Tensor> views{t};
      for (int step = 0; step < 6; ++step) {
        Tensor view = views[static_cast<std::size_t>(below(std::ssize(views)))];
        if (view.rank() == 2 && below(3) == 0) view = view.transpose();
        for (std::int64_t more = below(3); more > 0 && view.rank() > 0; --more) {
          const std::int64_t n = view.shape()[0], begin = below(n);
          view = below(4) == 0
                     ? view.at({begin})
                     : view.at({slice(begin, begin + 1 + below(n - begin), 1 + below(2))});
        }
        if (below(2) == 0 && view.numel() > 0) views.push_back(view);
        const Tensor value = reduce(reads[static_cast<std::size_t>(below(std::ssize(reads)))],
                                    "... -> ", Reduction::sum);
        if (below(3) == 0) {
          view.fill(static_cast<double>(step));
        } else if (below(2) == 0) {
          view.copy_from(view * 0.5 + value * 0.125);
        } else {
          const Tensor other = t.at({below(t.shape()[0])});
          if (view.shape() == other.shape()) view.copy_from(other + 1.0);
        }
        reads.push_back((below(2) == 0 ? t : view) * 2.0);
      }
      Tensor sum = zeros({});
      for (const Tensor& x : reads) sum = sum + reduce(x, "... -> ", Reduction::sum);
      return sum;
    };
    expect_like_eager(f, arange(20).to(DType::f64).view({4, 5}), ones({3}, DType::f64));
  });
}

}  // namespace
}  // namespace ein
